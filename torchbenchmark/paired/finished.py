"""Two finished runs held against each other: what can be said, and what cannot, as they were not measured in pairs.

The processes of two runs lie hours apart, perhaps on two machines: the speed of the host, the clocks and the neighbours
of either run are in its numbers, and no interval can tell them from the build. So there is a change and the spread of
either side, counts that are exact, and no verdict on a time.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torchbenchmark.channels import CHANNELS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.values import location
from torchbenchmark.quantity import counted
from torchbenchmark.records import Record, Run, Status

FinishedState = Literal[
    "compared", "newly failing", "fixed", "failing", "only in A", "only in B", "workload changed", "batch size changed"
]


@dataclass(frozen=True)
class Side:
    """One channel of one test on one side: median of the processes' locations, and how far they lie apart."""

    value: float
    spread: float  # (largest - smallest) / median
    processes: int


@dataclass(frozen=True)
class FinishedRow:
    test: str
    channel: str
    a: Side
    b: Side
    change: float | None  # positive: B takes longer, or counts more
    beyond_spread: bool  # the processes of the two sides do not overlap


@dataclass(frozen=True)
class Finished:
    """What two runs show beside each other."""

    rows: tuple[FinishedRow, ...]
    states: dict[str, tuple[FinishedState, str]]  # of every test that is not simply compared, with its reason
    cannot_know: tuple[str, ...]


def compare_runs(a: Run, b: Run, channels: Sequence[str] = ()) -> Finished:
    """Every test of either run. Raises BenchmarkError for runs of two devices: their numbers have nothing in common."""
    if a.header.device != b.header.device:
        raise BenchmarkError(
            f"run {a.header.run} is of {a.header.device}, run {b.header.run} of {b.header.device}: nothing to compare"
        )
    of_a, of_b = ({record.test: record for record in run.records} for run in (a, b))
    rows: list[FinishedRow] = []
    states: dict[str, tuple[FinishedState, str]] = {}
    for test in sorted(of_a.keys() | of_b.keys()):
        one, other = of_a.get(test), of_b.get(test)
        state = _state(one, other)
        if state is not None:
            states[test] = state
        if one is not None and other is not None and state is None:
            rows += _rows(test, one, other, channels)
    return Finished(tuple(rows), states, tuple(_cannot_know(a, b)))


def _state(one: Record | None, other: Record | None) -> tuple[FinishedState, str] | None:
    if other is None:
        return "only in A", ""
    if one is None:
        return "only in B", ""
    if one.workload.hash != other.workload.hash:
        return (
            "workload changed",
            f"{one.workload.version} ({one.workload.hash}) and {other.workload.version} ({other.workload.hash})",
        )
    if one.status is Status.OK and other.status is Status.OK:
        if None not in (one.batch_size, other.batch_size) and one.batch_size != other.batch_size:
            return "batch size changed", f"{one.batch_size} and {other.batch_size}"
        return None
    if one.status is Status.OK:
        return "newly failing", f"{other.status}: {other.reason}"
    if other.status is Status.OK:
        return "fixed", f"was {one.status}: {one.reason}"
    return "failing", f"A {one.status}: {one.reason}; B {other.status}: {other.reason}"


def _rows(test: str, one: Record, other: Record, channels: Sequence[str]) -> list[FinishedRow]:
    rows = []
    for channel, kind in CHANNELS.items():
        if channel not in channels if channels else not kind.judged:
            continue
        sides = [_side(channel, record) for record in (one, other)]
        if sides[0] is None or sides[1] is None:
            continue
        a, b = sides[0], sides[1]
        rows.append(
            FinishedRow(test, channel, a, b, _change(a.value, b.value, kind.better), _apart(channel, one, other))
        )
    return rows


def _locations(channel: str, record: Record) -> list[float]:
    return [location(channel, one) for one in record.process_channels(channel)]


def _side(channel: str, record: Record) -> Side | None:
    values = _locations(channel, record)
    if not values:
        return None
    middle = statistics.median(values)
    return Side(middle, (max(values) - min(values)) / middle if middle else 0.0, len(values))


def _apart(channel: str, one: Record, other: Record) -> bool:
    a, b = _locations(channel, one), _locations(channel, other)
    return max(a) < min(b) or max(b) < min(a)


def _change(a: float, b: float, better: str) -> float | None:
    if a == b:
        return 0.0
    if a <= 0 or b <= 0 or not (math.isfinite(a) and math.isfinite(b)):
        return None
    return b / a - 1 if better == "lower" else a / b - 1


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 2 * 3600 else f"{seconds / 60:.0f} minutes"


def _cannot_know(a: Run, b: Run) -> list[str]:
    """Why the numbers of these two runs differ besides the builds, as far as the records tell."""
    told = [
        "not measured in pairs: the speed of the host at either time is in every number, so no time has a verdict; "
        "`torchbench ab` measures both side by side"
    ]
    one, other = a.header, b.header
    told.append(f"{_duration(abs((other.started - one.started).total_seconds()))} lie between them")
    if one.machine_class != other.machine_class:
        told.append(f"two classes of machines: {one.machine_class} and {other.machine_class}")
    elif one.environment.fingerprint != other.environment.fingerprint:
        names = one.environment.facts.keys() | other.environment.facts.keys()
        facts = sorted(name for name in names if one.environment.facts.get(name) != other.environment.facts.get(name))
        told.append(f"two environments, which differ in {', '.join(facts) or 'what is not recorded'}")
    if one.environment.observed.get("host") != other.environment.observed.get("host"):
        told.append("two hosts")
    if one.measuring.settings != other.measuring.settings:
        told.append("measured with other settings")
    if one.harness != other.harness:
        told.append(f"two versions of the harness: {one.harness[:12]} and {other.harness[:12]}")
    few = min(one.rounds, other.rounds)
    if few < 3:
        told.append(f"{counted(few, 'round')}: what a fresh zygote changes is not seen")
    return told
