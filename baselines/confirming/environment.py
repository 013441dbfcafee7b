"""Whether the machine moved, or the build: the last good build, measured tonight, here, decides."""

import functools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from baselines.confirming.bench import Bench, Values
from baselines.confirming.levels import Rows, level_before, moved_tonight
from baselines.confirming.rules import Rules
from baselines.confirming.seen import Seen
from baselines.confirming.state import ClassState
from baselines.screening.noise import BoolArray, FloatArray, IntArray

_FAR = (
    2.0  # standard deviations of a night from the level: a series that moved, for the count of those that moved alike
)
_OFF = 3.0  # standard deviations of the bridging build from the level
NIGHTS_BACK = 7  # the bridging build is of so many nights ago, where the segment is as old


@dataclass(frozen=True)
class Bridge:
    """The last good build of every series, measured tonight."""

    logs: FloatArray  # (series,): ln of the median over its processes; nan where it was not measured
    processes: int

    @property
    def measured(self) -> IntArray:
        return np.flatnonzero(np.isfinite(self.logs))


def reasons(seen: Seen, rows: Rows, state: ClassState, rules: Rules) -> list[str]:
    """Why the environment is suspected tonight, as sentences."""
    found = []
    if state.era_of(seen.tonight, seen.environments[-1]) is None:
        found.append(f"the environment is another: {seen.environments[-1]}")
    share, sign = moved_alike(rows, seen.there)
    if share > rules.share_moved_alike and enough_alike(seen, rows, rules):
        found.append(f"{share:.0%} of the series are {'higher' if sign > 0 else 'lower'} tonight")
    if seen.canary:
        found.append(seen.canary)
    return found


def moved_alike(rows: Rows, there: BoolArray | None = None) -> tuple[float, int]:
    """(the share of the series with a level that moved to one side tonight, which side). `there`: (series,), those
    that tonight has; all if it is not said."""
    distances = moved_tonight(rows)
    known = np.isfinite(distances) & (True if there is None else there)
    if not known.any():
        return 0.0, 1
    up, down = np.sum(distances[known] > _FAR), np.sum(distances[known] < -_FAR)
    return float(max(up, down) / known.sum()), 1 if up >= down else -1


def enough_alike(seen: Seen, rows: Rows, rules: Rules) -> bool:
    """Whether there are so many tests tonight that most of them mean something."""
    known = np.flatnonzero(np.isfinite(moved_tonight(rows)) & seen.there)
    return len({seen.series[row].test for row in known}) >= rules.fewest_alike


def bridging_bases(seen: Seen, state: ClassState, segments: IntArray) -> IntArray:
    """(series,): the night whose build bridges: of a week ago, or the first of the segment if that is newer."""
    return np.maximum(np.maximum(0, len(seen.nights) - 1 - NIGHTS_BACK), segments)


def measurable(bases: IntArray, seen: Seen, segments: IntArray, bench: Bench) -> IntArray:
    """(series,): the same nights, or where a build is gone the newest before it in the segment whose build is not, else
    the next one after it."""
    found, last = bases.copy(), len(seen.nights) - 1

    @functools.cache
    def has(night: int) -> bool:
        return bench.has(seen.builds[night])

    for row, (base, first) in enumerate(zip(bases.tolist(), segments.tolist(), strict=True)):
        if not has(base):
            others = (*range(base - 1, first - 1, -1), *range(base + 1, last))
            found[row] = next(filter(has, others), base)
    return found


def bridge(seen: Seen, series: Sequence[int], bases: IntArray, bench: Bench, processes: int) -> Bridge:
    """Measure the bridging build of some series."""
    logs, used = np.full(len(seen.series), np.nan), 0
    by_build: dict[str, list[int]] = {}
    for row in series:
        by_build.setdefault(seen.builds[int(bases[row])], []).append(row)
    for build, rows in by_build.items():
        if not bench.has(build):
            continue
        tests = list(dict.fromkeys(seen.series[row].test for row in rows))
        measured = bench.again(tests, build, processes)
        used += processes * len(measured)
        for row in rows:
            logs[row] = _log_median(measured, seen, row)
    return Bridge(logs, used)


def _log_median(measured: Mapping[str, Values], seen: Seen, row: int) -> float:
    key = seen.series[row]
    values = [value for value in measured.get(key.test, {}).get(key.channel, ()) if value > 0]
    return math.log(statistics.median(values)) if values else math.nan


def quieter_tests(seen: Seen, rows: Rows, count: int) -> list[int]:
    """Series of so many tests at random out of the quieter half of those with a level that ran tonight, the same ones
    if asked again; of each test its quietest."""
    level, _ = level_before(rows, 1)
    there = np.isfinite(level) & seen.there
    known = [int(row) for row in np.argsort(rows.noise, kind="stable") if there[row]]
    quietest = list({seen.series[row].test: row for row in reversed(known)}.values())
    quietest.sort(key=lambda row: (rows.noise[row], row))
    half = quietest[: max(count, len(quietest) // 2)]
    chosen = random.Random(f"bridging {seen.tonight.isoformat()}").sample(half, min(count, len(half)))
    return sorted(chosen)


def is_environment(bridged: Bridge, rows: Rows, shifted: FloatArray, rules: Rules) -> tuple[bool, str]:
    """Whether the bridging build is off its own history. `shifted`: (series,), its values without the shifts of the
    environment that was believed in."""
    level, _ = level_before(rows, 1)
    measured = bridged.measured
    distances = (shifted[measured] - level[measured]) / rows.noise[measured]
    distances = distances[np.isfinite(distances)]
    if not len(distances):
        return False, "no bridging run could be made"
    off = float(np.mean(np.abs(distances) > _OFF))
    told = f"{off:.0%} of {len(distances)} tests of the last good build, measured tonight, are off their own level"
    return off > rules.share_off_their_level, told
