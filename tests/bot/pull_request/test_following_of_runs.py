"""The status of a request is edited while its job is at work, also where another repository's workflow calls."""

import pytest
from made_results import make_request

from bot.github.looking import WorkflowRun
from bot.pull_request.following import follow


class Run:
    """A run whose measuring job goes from step to step each time that somebody looks."""

    def __init__(self, name: str, *steps: str) -> None:
        self.name, self.steps = name, iter([*(("in_progress", step) for step in steps), ("completed", "")])

    def run(self, id: int) -> WorkflowRun:
        return WorkflowRun(id, "in_progress", "https://example.org", jobs=((self.name, *next(self.steps)),))


@pytest.mark.parametrize("name", ["measure", "benchmark / measure"])
def test_each_new_step_of_the_measuring_job_is_told_once(name):
    told: list[str] = []
    run = Run(name, "Set up job", "Build base", "Build base", "Build head", "Measure, part 1 of 4")
    edits = follow(make_request(), 7, run, lambda actions: told.extend(one.body for one in actions), lambda _: None)  # type: ignore[arg-type]
    assert edits == len(told) == 3
