"""What builds the commits of a range and measures each by itself, for what is compared exactly: what a command counts
or how it exits, or the status or a count of tests of the suite."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bot.bisection.document import Asked, End, Made, Visit
from bot.bisection.instruments import Keep, TestsInstrument, Workplaces, require_checkouts
from bot.bisection.outcomes import FAILS, OK
from bot.bisection.script import CannotMeasure, exact_numbers, exit_of, run_output
from torchbenchmark.paired.values import values_of
from torchbenchmark.records import Record, Run, Status
from torchbenchmark.reporter import Reporter
from torchbenchmark.runner import resume_run, start_run


@dataclasses.dataclass(frozen=True)
class ExactScript:
    """Runs of a command in the checkout of a commit: the numbers that it prints or, of `status`, whether it fails."""

    worktrees: Workplaces
    command: str
    scratch: Path
    timeout_s: float
    status: bool

    def build(self, commit: str) -> Made:
        return self.worktrees.build(commit)

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        require_checkouts(self.worktrees, {visit.commit})
        return _runs(visit, keep, lambda visit: [self._run(visit.commit)])

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
        return _runs(visit, keep, lambda visit: self._outcomes(self._run(visit)))

    def _run(self, visit: Visit) -> Run:
        """The tests in a process for each run that is lacking; goes on where a kill has left it. In one run a test that
        has failed is not measured again: further runs see to that."""
        python = self.tests.provided(visit.commit).interpreter
        out = self.tests.folder / f"{visit.number:03}-{visit.commit[:12]}-run-{len(visit.ends) + 1}.jsonl"
        with self.reporter() as reporter:
            if out.exists() and out.stat().st_size > 0:
                return resume_run(out, python, reporter, retry_failed=False)
            out.parent.mkdir(parents=True, exist_ok=True)
            rounds = visit.n - len(visit.ends)
            request = dataclasses.replace(self.tests.request, rounds=rounds, processes=1, python=python)
            return start_run(request, out, reporter)

    def _outcomes(self, run: Run) -> list[tuple[str, str]]:
        """Of the rounds that every test has come to."""
        rounds = zip(*(_ends(record) for record in run.records), strict=False)
        tests = [record.test for record in run.records]
        of = _status if self.asked.compared == "status" else self._count
        return [of(dict(zip(tests, ends, strict=True))) for ends in rounds]

    def _count(self, ends: Mapping[str, "_Ended"]) -> tuple[str, str]:
        counts = {}
        for test, one in ends.items():
            if one.status is not Status.OK:
                raise CannotMeasure(
                    f"{test}: {one.status}: {one.reason}; a test that does not end ok counts nothing, and --status "
                    "bisects that"
                )
            if self.asked.channel not in one.values:
                raise CannotMeasure(f"{test}: gave no {self.asked.channel}")
            counts[test] = exact_numbers(repr(one.values[self.asked.channel]))
        told = list(counts.values()) if len(counts) == 1 else [f"{test} {count}" for test, count in counts.items()]
        return ", ".join(told), ""


@dataclasses.dataclass(frozen=True)
class _Ended:
    """How one process of a test ended."""

    status: Status
    reason: str
    values: Mapping[str, float]


def _ends(record: Record) -> list[_Ended]:
    """At least one, also of a test that no process was started for."""
    ends = [
        _Ended(one.status, one.reason, values_of(one).locations if one.status is Status.OK else {})
        for one in record.processes
    ]
    if record.status is not Status.OK and all(one.status is Status.OK for one in ends):
        ends.append(_Ended(record.status, record.reason, {}))
    return ends


def _status(ends: Mapping[str, _Ended]) -> tuple[str, str]:
    """The status of the test; of several, those that are not ok."""
    other = {test: one for test, one in ends.items() if one.status is not Status.OK}
    if not other:
        return OK, ""
    why = next(iter(other.values())).reason
    if len(ends) == 1:
        return str(next(iter(other.values())).status), why
    return ", ".join(f"{test} {one.status}" for test, one in other.items()), why


def _runs(visit: Visit, keep: Keep, run: Callable[[Visit], Sequence[tuple[str, str]]]) -> Visit:
    """The visit with all its runs, as many at a time as `run` makes, stored before the next are made."""
    while len(visit.ends) < visit.n:
        began = time.monotonic()
        made = run(visit)[: visit.n - len(visit.ends)]
        seconds = time.monotonic() - began
        ends = tuple(End(outcome=outcome, why=why, seconds=seconds / len(made)) for outcome, why in made)
        visit = visit.model_copy(update={"ends": (*visit.ends, *ends), "seconds": visit.seconds + seconds})
        keep(visit)
    return visit
