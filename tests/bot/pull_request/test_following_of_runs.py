"""The status of a request is edited while its job is at work, also where another repository's workflow calls."""

import pytest

from bot.benchmark_request import BenchmarkRequest
from bot.github.looking import WorkflowRun
from bot.pull_request.following import follow

REQUEST = BenchmarkRequest(
    key="0" * 16,
    repository="o/r",
    pull=1,
    comment=1,
    asked_by="ada",
    base="b" * 40,
    head="a" * 40,
    head_repository="o/r",
    suite="smoke",
    tests=("test_eval[resnet18-cpu-eager]",),
    device="cpu",
    pairs=6,
    budget_minutes=1,
)


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
    edits = follow(REQUEST, 7, run, lambda actions: told.extend(one.body for one in actions), lambda _: None)  # type: ignore[arg-type]
    assert edits == len(told) == 3
