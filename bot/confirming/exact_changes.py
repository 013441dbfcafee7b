"""Which status and count changes of a night are asked again, and against the builds of which nights."""

from collections.abc import Callable, Sequence
from datetime import datetime

from baselines.confirming.exact import ExactChange
from baselines.confirming.state import ClassState
from baselines.report import CountChange, Report, State
from baselines.series import NightSummary, TestSummary
from torchbenchmark.channels import CHANNELS

_NIGHTS = 30  # back to which the build from before is looked for


def exact_changes(
    report: Report, tonight: NightSummary, nights: Sequence[NightSummary], state: ClassState
) -> list[ExactChange]:
    """Of a night with its report. `nights`: those before it, oldest first."""
    found = []
    for row in report.rows:
        if row.state is State.NEWLY_FAILING or (row.state is State.STILL_FAILING and row.test in state.failing):
            bases = _bases(row.test, tonight, nights, lambda then: then.ok)
            found.append(ExactChange(row.test, "newly failing", bases))
        elif row.state is State.FIXED:
            found.append(ExactChange(row.test, "fixed", _bases(row.test, tonight, nights, lambda then: then.failed)))
    for change in report.counts:
        if CHANNELS[change.channel].judged:
            bases = _bases(change.test, tonight, nights, lambda then, change=change: _counted(then, change))
            found.append(ExactChange(change.test, "count change", bases, change.channel, change.tonight))
    return found


def _bases(
    test: str, tonight: NightSummary, nights: Sequence[NightSummary], as_before: Callable[[TestSummary], bool]
) -> tuple[tuple[datetime, str], ...]:
    """The nights in which the same workload was as before, with their builds, the newest first."""
    hash_now = tonight.tests[test].workload.hash
    return tuple(
        (night.started, night.build.id)
        for night in reversed(nights[-_NIGHTS:])
        if test in night.tests and night.tests[test].workload.hash == hash_now and as_before(night.tests[test])
    )


def _counted(then: TestSummary, change: CountChange) -> bool:
    return (
        then.ok
        and change.channel in then.channels
        and then.channels[change.channel].location("median") == change.baseline
    )
