"""A night in a few numbers per test and channel, and the segment: how far back nights are comparable to tonight."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from baselines.runs import run_prefix
from torchbenchmark.gpu_watch import faults
from torchbenchmark.records import Build, CanaryOf, Channel, Environment, Measuring, Record, Run, Status, Workload

Statistic = Literal["p20", "median", "mean"]
# Machines of one class may differ in their environment and take turns: how far back nights of tonight's own environment
# are looked for beyond nights of others. What is older was measured in another time of the builds, too.
TURNS = timedelta(days=30)
NO_RECORD = "no record: the run ended before this test"


def _in_utc(time: datetime) -> datetime:
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


UtcTime = Annotated[datetime, AfterValidator(_in_utc)]  # a time without a zone is taken for UTC


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Pooled(_Schema):
    """Statistics over the samples of all processes together.

    A neighbour on a shared CPU slows a process for its whole life. Pooled, one quick process of three is enough to keep
    the 20th percentile where it belongs; a median over processes is wrong as soon as two are hit.
    """

    p20: float
    median: float
    mean: float


class ChannelSummary(_Schema):
    """One channel of one test: one value per process and statistic, and over all samples of the night."""

    unit: str
    p20: tuple[float, ...]
    median: tuple[float, ...]
    mean: tuple[float, ...]
    pooled: Pooled

    def location(self, statistic: Statistic) -> float:
        """The night's one value of the channel; not a number if any process has one that is not finite."""
        values = (*getattr(self, statistic), getattr(self.pooled, statistic))
        return values[-1] if all(map(math.isfinite, values)) else math.nan


class TestSummary(_Schema):
    """How one planned test ended; without a status if the run ended before it."""

    __test__ = False  # not a class of tests, whatever pytest thinks of its name

    workload: Workload
    status: Status | None
    reason: str = ""
    channels: dict[str, ChannelSummary] = {}
    throttled: bool = False  # the machine held its GPU back in most of the processes
    absent: bool = False  # its shard has not been delivered: the night says nothing of it

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    @property
    def is_sound(self) -> bool:
        """Ended ok on a machine that did not hold its GPU back: its times are the build's."""
        return self.ok and not self.throttled

    @property
    def failed(self) -> bool:
        """Also true for a test without a record: it was meant to run and gave nothing."""
        return not self.absent and (self.status is None or self.status.failed)


class NightSummary(_Schema):
    """One run of a suite, small enough to keep months of them in one object."""

    run: str
    key: str  # the run's prefix in a store; the same whether it is stored or not
    suite: str
    machine_class: str = Field(alias="class")
    device: str
    started: UtcTime
    build: Build
    environment: Environment  # without what changes by nature (`observed`)
    runner: str = ""  # the host; empty if the night's shards ran on several, or in nights of before this was kept
    measuring: Measuring
    harness: str
    selection: tuple[str, ...] = ()  # globs that narrowed the suite; empty for a whole night
    coverage: float
    missing_shards: tuple[str, ...] = ()  # "i/n"
    canary: CanaryOf | None = None  # of a run of canaries: the night that it tells of
    tests: dict[str, TestSummary]

    @property
    def ok_tests(self) -> list[str]:
        return [test for test, summary in self.tests.items() if summary.ok]


def summarise(run: Run) -> NightSummary:
    """The night of a run: every planned test is in it, also those without a record."""
    header = run.header
    return NightSummary(
        run=header.run,
        key=run_prefix(header),
        suite=header.suite,
        machine_class=header.machine_class,
        device=header.device,
        started=header.started,
        build=header.build,
        environment=header.environment.model_copy(update={"observed": {}}),
        runner=header.environment.observed.get("host", ""),
        measuring=header.measuring,
        harness=header.harness,
        selection=header.selection,
        coverage=run.coverage,
        missing_shards=run.missing_shards,
        canary=header.canary,
        tests=dict(sorted(_tests_of(run).items())),
    )


def _tests_of(run: Run) -> dict[str, TestSummary]:
    records = {record.test: record for record in run.records}
    tests = {planned.test: _summarise_test(planned.workload, records.get(planned.test)) for planned in run.header.plan}
    if run.missing_shards:
        reason = f"not delivered: {missing_shards_text(run.missing_shards)}"
        for planned in run.header.elsewhere:
            tests[planned.test] = TestSummary(workload=planned.workload, status=None, reason=reason, absent=True)
    return tests


def missing_shards_text(shards: Sequence[str]) -> str:
    return f"shard {', '.join(shards)} {'is' if len(shards) == 1 else 'are'} missing"


def _summarise_test(workload: Workload, record: Record | None) -> TestSummary:
    if record is None:
        return TestSummary(workload=workload, status=None, reason=NO_RECORD)
    names = sorted({name for process in record.processes for name in process.channels})
    measured = {name: record.process_channels(name) for name in names}
    return TestSummary(
        workload=record.workload,
        status=record.status,
        reason=record.reason,
        channels={name: _summarise_channel(channels) for name, channels in measured.items() if channels},
        throttled=2 * sum(bool(faults(process.gpu)) for process in record.processes) > len(record.processes),
    )


def _summarise_channel(channels: Sequence[Channel]) -> ChannelSummary:
    return ChannelSummary(
        unit=channels[0].unit,
        p20=tuple(channel.p20 for channel in channels),
        median=tuple(channel.median for channel in channels),
        mean=tuple(channel.mean for channel in channels),
        pooled=_pool([sample for channel in channels for sample in channel.samples]),
    )


def _pool(samples: Sequence[float]) -> Pooled:
    import numpy  # up to a quarter of every command's start, for the few that summarise runs

    p20, median = numpy.percentile(samples, [20, 50])
    return Pooled(p20=float(p20), median=float(median), mean=math.fsum(samples) / len(samples))


def location(values: Sequence[float]) -> float:
    """Median of the values; not a number if there is none, or one that is not finite (a median would hide it)."""
    if not values or not all(math.isfinite(value) for value in values):
        return math.nan
    return statistics.median(values)


def chronological(nights: Sequence[NightSummary]) -> list[NightSummary]:
    """Oldest first; of two that started in the same instant, by key."""
    return sorted(nights, key=lambda night: (night.started, night.key))


@dataclass(frozen=True)
class Segment:
    """The nights of one series that are comparable to tonight, oldest first, and what ended it going back."""

    nights: tuple[NightSummary, ...]
    ended_by: Literal["", "workload change", "environment change", "unit change"] = ""
    reason: str = ""


@dataclass(frozen=True)
class _Change:
    """Why a night cannot be compared with tonight."""

    kind: Literal["workload change", "environment change", "unit change"]
    reason: str


def segment(tonight: NightSummary, history: Sequence[NightSummary], test: str, channel: str) -> Segment:
    """Going back from tonight while workload and unit are the same as tonight's: the nights of tonight's environment.

    `history` is oldest first, without tonight. A night in which the test failed or was not planned does not end the
    segment; it has no value of the series. Nor does a night of another environment if there are nights of tonight's own
    before it: machines may take turns, and one night elsewhere must not make all before it forgotten.
    """
    nights: list[NightSummary] = []
    elsewhere: tuple[NightSummary, _Change] | None = None  # the newest night of another environment before all of these
    for night in reversed(history):
        change = _what_changed(night, tonight, test, channel)
        if change is None:
            nights.append(night)
            elsewhere = None
        elif change.kind == "environment change" and tonight.started - night.started <= TURNS:
            elsewhere = elsewhere or (night, change)
        else:
            elsewhere = elsewhere or (night, change)
            break
    if elsewhere is None:
        return Segment(tuple(reversed(nights)))
    night, change = elsewhere
    return Segment(tuple(reversed(nights)), change.kind, f"{change.reason} after {night.started:%Y-%m-%d}")


def comparable_nights(
    tonight: NightSummary, history: Sequence[NightSummary], alike: Sequence[bool], test: str
) -> Iterator[NightSummary]:
    """The nights of a test's segment, the newest first, as `segment` has them of a channel whose unit never changed.

    `alike` says per night of the history whether it is of tonight's environment: that holds for all tests, and of
    thousands of series it need not be found again.
    """
    workload = tonight.tests[test].workload.hash
    for night, is_alike in zip(reversed(history), reversed(alike), strict=True):
        before = night.tests.get(test)
        if before is not None and before.workload.hash != workload:
            return
        if is_alike:
            yield night
        elif tonight.started - night.started > TURNS:
            return


def is_of_environment(night: NightSummary, other: NightSummary) -> bool:
    """Whether both were measured in the same environment in the same way."""
    return is_measured_alike(night, other) and (night.environment.fingerprint == other.environment.fingerprint)


def is_measured_alike(one: NightSummary, other: NightSummary) -> bool:
    """Whether both were measured with the same settings."""
    # Told as text, settings that are equal in it are no other; of equal ones, which nearly all are, none is made.
    return one.measuring == other.measuring or _how_measured(one) == _how_measured(other)


def _how_measured(night: NightSummary) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in night.measuring.settings.items())


def _what_changed(then: NightSummary, now: NightSummary, test: str, channel: str) -> _Change | None:
    before, after = then.tests.get(test), now.tests[test]
    if before is not None and before.workload.hash != after.workload.hash:
        old, new = before.workload, after.workload
        return _Change("workload change", f"workload {old.version} ({old.hash}) became {new.version} ({new.hash})")
    if not is_measured_alike(then, now):
        return _Change("environment change", f"measuring ({_how_measured(then)}) became ({_how_measured(now)})")
    if then.environment.fingerprint != now.environment.fingerprint:
        return _Change(
            "environment change", f"environment {then.environment.fingerprint} became {now.environment.fingerprint}"
        )
    if before is not None and channel in before.channels and channel in after.channels:
        old_unit, new_unit = before.channels[channel].unit, after.channels[channel].unit
        if old_unit != new_unit:
            return _Change("unit change", f"unit changed from {old_unit} to {new_unit}")
    return None
