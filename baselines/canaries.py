"""Canaries in the store: what tests on a frozen build gave, night by night, and whether they moved tonight.

Their build does not change, so what moves them is the environment: the reason to suspect it that needs no other test.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from baselines.confirming.shares import share_of
from baselines.history import read_nights
from baselines.series import NightSummary, Statistic, TestSummary
from baselines.store import Store
from torchbenchmark.channels import CHANNELS
from torchbenchmark.records import Status

NIGHTS = 61  # read: the screen's running scale looks at 60 distances
FEWEST_NIGHTS = 7  # of a level: a median of fewer is no better than the nights themselves
LEVEL_NIGHTS = 30  # newest that give a level: machines wander slowly
CLIP = 3.5  # of z: one wild canary is not an environment
LIMIT = 4.0  # standard errors of the mean over the canaries
TOLD_Z = 3.0  # from here on a single canary is named

Turn = Literal["first", "last"]


@dataclass(frozen=True)
class CanaryNight:
    """The canaries of one night on one frozen build in one class: a first and a last run of every shard."""

    run: str  # the night's
    started: datetime
    runs: tuple[NightSummary, ...]
    left_out: tuple[NightSummary, ...] = ()  # measured on another frozen build than the others

    @property
    def measured(self) -> tuple[NightSummary, ...]:
        return tuple(run for run in self.runs if run.ok_tests)

    @property
    def tests(self) -> list[str]:
        return sorted({test for run in self.runs for test in run.tests})

    @property
    def failures(self) -> dict[str, str]:
        """The canaries that are not measured in one of the runs, and why."""
        return {
            test: f"{one.status or 'missing'}: {one.reason}"
            for run in self.runs
            for test, one in run.tests.items()
            if not one.ok and one.status is not Status.SKIPPED
        }

    def values(self, test: str, channel: str, statistic: Statistic = "median", turn: Turn | None = None) -> list[float]:
        """One value per process, of both turns or of one; none where the canary was not measured."""
        return [
            value
            for run in self.runs
            if run.canary is not None and turn in (None, run.canary.turn)
            for value in _values(run.tests.get(test), channel, statistic)
        ]


def _values(summary: TestSummary | None, channel: str, statistic: Statistic) -> tuple[float, ...]:
    if summary is None or not summary.ok or channel not in summary.channels:
        return ()
    values = getattr(summary.channels[channel], statistic)
    return values if all(math.isfinite(value) and value > 0 for value in values) else ()


@dataclass(frozen=True)
class TestMove:
    """One canary against its level."""

    __test__ = False  # not a class of tests, whatever pytest thinks of its name

    test: str
    shift: float  # ln(tonight / level), positive: slower, or more
    error: float  # standard deviation of that where nothing happens
    nights: int  # of the level

    @property
    def z(self) -> float:
        return self.shift / self.error


@dataclass(frozen=True)
class CanaryMove:
    """Whether the frozen build moved tonight, and by how much."""

    moved: bool
    channel: str
    statistic: float = 0.0  # the mean over the canaries of z, clipped, in its standard errors
    shift: float = 0.0  # ln: the median over the canaries
    error: float = 0.0  # standard error of that
    tests: tuple[TestMove, ...] = ()  # those that have a level, the most moved first
    failing: tuple[str, ...] = ()  # canaries that have a level and were not measured tonight, with their reason
    why_not: str = ""  # why nothing can be said

    @property
    def sentence(self) -> str:
        """What is to be told, with its numbers."""
        if self.why_not:
            return f"the frozen build says nothing: {self.why_not}"
        far = [f"{one.test} {share_of(one.shift):+.2%}" for one in self.tests if abs(one.z) >= TOLD_Z]
        how = "moved" if self.moved else "did not move"
        told = (
            f"the frozen build {how}: {self.channel} of {len(self.tests)} canaries {share_of(self.shift):+.2%} "
            f"(standard error {self.error:.2%}), {abs(self.statistic):.1f} standard errors of the mean"
        )
        told += f"; beyond {TOLD_Z:g} standard deviations: {', '.join(far)}" if far else ""
        return told + "".join(f"; {failing}" for failing in self.failing)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence}


def read_canaries(
    store: Store, suite: str, machine_class: str, run: str, started: datetime, nights: int = NIGHTS
) -> tuple[list[CanaryNight], CanaryNight | None]:
    """The canaries of the nights before a night, oldest first, and its own (None if it has none); `suite` is theirs.

    Only of the build that the night's own were measured on. Reads as many objects as any history does.
    """
    moment = timedelta(microseconds=1)  # canaries carry the start of their night
    found = read_nights(
        store, suite, machine_class, nights + 1, before=started + moment, wanted=_begins_a_night, read_only=True
    )
    groups: dict[str, list[NightSummary]] = {}
    for one in found:
        if one.canary is not None:
            groups.setdefault(one.canary.run, []).append(one)
    own = groups.pop(run, None)
    if own is None:
        return [], None
    tonight = _night(run, own)
    history = [
        _night(name, same)
        for name, runs in groups.items()
        if (same := [one for one in runs if is_same_build(one, tonight)])
    ]
    return sorted(history, key=lambda night: (night.started, night.run)), tonight


def _begins_a_night(run: NightSummary) -> bool:
    return run.canary is not None and run.canary.turn == "first" and run.canary.shard.index == 1


def _night(run: str, runs: Sequence[NightSummary]) -> CanaryNight:
    """Of one shard and turn the run that was measured, where another says that none has come."""
    chosen: dict[tuple[int, str], NightSummary] = {}
    for one in runs:
        assert one.canary is not None
        place = (one.canary.shard.index, one.canary.turn)
        if place not in chosen or len(one.ok_tests) > len(chosen[place].ok_tests):
            chosen[place] = one
    night = CanaryNight(run, runs[0].started, tuple(chosen[place] for place in sorted(chosen)))
    others = tuple(one for one in night.measured if not is_same_build(one, night))
    return replace(night, runs=tuple(one for one in night.runs if one not in others), left_out=others)


def is_same_build(one: NightSummary, night: CanaryNight) -> bool:
    """Whether a run was measured on the frozen build of a night, with all that lies beside it."""
    reference = next(iter(night.measured or night.runs))
    return _frozen(one) == _frozen(reference)


def _frozen(run: NightSummary) -> tuple[str, str]:
    return run.build.id, run.canary.lock if run.canary is not None else ""


def moved(
    history: Sequence[CanaryNight],
    tonight: CanaryNight,
    channel: str,
    statistic: Statistic = "median",
    since: datetime | None = None,
) -> CanaryMove:
    """Whether the frozen build moved tonight against the nights before, which are of the same build.

    Per canary z = (y - level) / (s sqrt(1 + pi / (2 m))): y is ln of the median over tonight's processes, the level the
    median of the m newest such values, s the running scale in standard deviations, and the root the level's own error.
    The build moved if the mean over n canaries of z, clipped to 3.5, times sqrt(n) is beyond 4: without a change and
    with independent canaries that is a standard normal.

    `since`: the first night of the present environment, where one is known to have changed; levels begin there. The
    scale does not: a step is one of its sixty distances.
    """
    everything = {test: _series(test, history, tonight, channel, statistic) for test in tonight.tests}
    measured = {test: series for test, series in everything.items() if series is not None}
    moves = (_move(test, *series, since) for test, series in measured.items())
    judged = sorted((one for one in moves if one is not None), key=lambda one: -abs(one.z))
    newest = history[-1] if history else None
    failing = tuple(
        f"{test} fails on it, {reason}"
        for test, reason in sorted(tonight.failures.items())
        if newest is not None and newest.values(test, channel, statistic) and test not in newest.failures
    )
    if not judged:
        most = max((len(_of_level(nights, since)) for nights, _ in measured.values()), default=0)
        why_not = (
            f"{most} comparable nights before, and a level needs {FEWEST_NIGHTS}"
            if measured
            else f"no canary has {channel} tonight"
        )
        return CanaryMove(False, channel, failing=failing, why_not=why_not)
    total = combined([one.z for one in judged])
    # A median of n values has pi / 2 times the variance of their mean.
    error = math.sqrt(math.pi / 2 * sum(one.error**2 for one in judged)) / len(judged)
    shift = statistics.median(one.shift for one in judged)
    return CanaryMove(abs(total) > LIMIT, channel, total, shift, error, tuple(judged), failing)


def combined(z: Sequence[float]) -> float:
    """The mean of z, clipped, in its standard errors if all have a deviation of 1 and are independent."""
    return sum(max(-CLIP, min(one, CLIP)) for one in z) / math.sqrt(len(z))


_Nights = list[tuple[datetime, float]]


def _series(
    test: str, history: Sequence[CanaryNight], tonight: CanaryNight, channel: str, statistic: Statistic
) -> tuple[_Nights, float] | None:
    """ln of the value of each comparable night before that has one, oldest first, and of tonight; None if that has
    none."""
    now = _value(tonight, test, channel, statistic)
    if now is None:
        return None
    reference = next(run for run in tonight.runs if _values(run.tests.get(test), channel, statistic))
    alike = (_comparable(night, reference, test, channel) for night in history)
    values = ((night.started, _value(night, test, channel, statistic)) for night in alike)
    return [(started, value) for started, value in values if value is not None], now


def _value(night: CanaryNight, test: str, channel: str, statistic: Statistic) -> float | None:
    """ln of the median over the processes, larger being slower; None without any."""
    values = night.values(test, channel, statistic)
    if not values:
        return None
    log = math.log(statistics.median(values))
    return log if channel not in CHANNELS or CHANNELS[channel].better == "lower" else -log


def _comparable(night: CanaryNight, reference: NightSummary, test: str, channel: str) -> CanaryNight:
    """The runs of a night that measured the same workload in the same way. The environment may be another: whether
    that moves the frozen build is the question."""
    here = reference.tests[test]
    runs = (
        run
        for run in night.runs
        if (there := run.tests.get(test)) is not None
        and there.workload.hash == here.workload.hash
        and (run.measuring == reference.measuring or run.measuring.settings == reference.measuring.settings)
        and (channel not in there.channels or there.channels[channel].unit == here.channels[channel].unit)
    )
    return replace(night, runs=tuple(runs))


def _of_level(nights: _Nights, since: datetime | None) -> list[float]:
    return [value for started, value in nights if since is None or started >= since][-LEVEL_NIGHTS:]


def _move(test: str, nights: _Nights, now: float, since: datetime | None) -> TestMove | None:
    """None if there are too few nights for a level."""
    import numpy  # takes a while to import; only who has canaries does

    from baselines.screening.noise import READS, running_scale

    level = _of_level(nights, since)
    if len(level) < FEWEST_NIGHTS:
        return None
    scale = float(running_scale(numpy.array([[value for _, value in nights]]))[0, -1])
    error = scale / READS * math.sqrt(1 + math.pi / (2 * len(level)))
    return TestMove(test, now - statistics.median(level), error, len(level))
