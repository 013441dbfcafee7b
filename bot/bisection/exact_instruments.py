"""What builds the commits of a range and measures each by itself, for what is compared exactly: what a command counts
or how it exits, or the status or a count of tests of the suite."""

import dataclasses
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from bot.bisection.document import Asked, End, Made, Visit
from bot.bisection.instruments import Keep, TestsInstrument, require_checkouts
from bot.bisection.outcomes import FAILS, OK
from bot.bisection.script import CannotMeasure, exact_numbers, exit_of, run_output
from bot.bisection.worktrees import Worktrees
from torchbenchmark.paired.values import values_of
from torchbenchmark.records import Record, Run, Status
from torchbenchmark.reporter import Reporter
from torchbenchmark.runner import resume_run, start_run


@dataclasses.dataclass(frozen=True)
class ExactScript:
    """Runs of a command in the checkout of a commit: the numbers that it prints or, of `status`, whether it fails."""

    worktrees: Worktrees
    command: str
    scratch: Path
    timeout_s: float
    status: bool

    def build(self, commit: str) -> Made:
        return self.worktrees.build(commit)

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        require_checkouts(self.worktrees, {visit.commit})
        return _runs(visit, keep, lambda _: self._run(visit.commit))

    def _run(self, commit: str) -> tuple[str, str]:
        run = exit_of if self.status else run_output
        found = run(
            self.command, self.worktrees.source(commit), self.scratch, self.worktrees.variables(commit), self.timeout_s
        )
        if not self.status:
            return exact_numbers(found), ""
        return (FAILS, found) if found else (OK, "")


@dataclasses.dataclass(frozen=True)
class ExactTests:
    """Tests of the suite, each run in fresh processes of the commit's build: their statuses, or one of their counts."""

    tests: TestsInstrument
    asked: Asked
    reporter: Callable[[], AbstractContextManager[Reporter]]

    def build(self, commit: str) -> Made:
        return self.tests.build(commit)

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        return _runs(visit, keep, lambda number: self._outcome(self._run(visit, number)))

    def _run(self, visit: Visit, number: int) -> Run:
        """One run of the tests; it goes on where a kill has left it."""
        python = self.tests.provided(visit.commit).interpreter
        out = self.tests.folder / f"{visit.number:03}-{visit.commit[:12]}-run-{number}.jsonl"
        with self.reporter() as reporter:
            if out.exists() and out.stat().st_size > 0:
                return resume_run(out, python, reporter, retry_failed=False)
            out.parent.mkdir(parents=True, exist_ok=True)
            request = dataclasses.replace(self.tests.request, rounds=1, processes=1, python=python)
            return start_run(request, out, reporter)

    def _outcome(self, run: Run) -> tuple[str, str]:
        return _statuses(run.records) if self.asked.compared == "status" else (self._counts(run.records), "")

    def _counts(self, records: tuple[Record, ...]) -> str:
        counts = {}
        for one in records:
            if one.status is not Status.OK:
                raise CannotMeasure(
                    f"{one.test}: {one.status}: {one.reason}; a test that does not end ok counts nothing, and "
                    "--status bisects that"
                )
            found = {values_of(process).locations.get(self.asked.channel) for process in one.processes}
            if len(found) != 1 or None in found:
                raise CannotMeasure(f"{one.test}: its processes gave no {self.asked.channel}")
            counts[one.test] = exact_numbers(str(found.pop()))
        return counts.popitem()[1] if len(counts) == 1 else ", ".join(f"{test} {n}" for test, n in counts.items())


def _statuses(records: tuple[Record, ...]) -> tuple[str, str]:
    """The status of the test; of several, those that are not ok."""
    other = [one for one in records if one.status is not Status.OK]
    if not other:
        return OK, ""
    if len(records) == 1:
        return str(other[0].status), other[0].reason
    return ", ".join(f"{one.test} {one.status}" for one in other), other[0].reason


def _runs(visit: Visit, keep: Keep, run: Callable[[int], tuple[str, str]]) -> Visit:
    """The visit with all its runs, each stored before the next one begins."""
    while len(visit.ends) < visit.n:
        began = time.monotonic()
        outcome, why = run(len(visit.ends) + 1)
        seconds = time.monotonic() - began
        end = End(outcome=outcome, why=why, seconds=seconds)
        visit = visit.model_copy(update={"ends": (*visit.ends, end), "seconds": visit.seconds + seconds})
        keep(visit)
    return visit
