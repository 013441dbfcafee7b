"""Level shifts of histories, found night by night: what a night reports depends on no later one.

Each night the best path through the last 150 nights gives boundaries; one that both tests of shift_test.py pass is
reported once, and what comes before it is no baseline any more. Few nights after it ask for more evidence. The method
was developed on the public nightly histories of docs/detection.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from baselines.screening import WINDOW, KnobName
from baselines.screening.noise import SMALLEST, BoolArray, FloatArray, IntArray, running_scale
from baselines.screening.potts import CAP, best_paths
from baselines.screening.shift_test import (
    SIDE,
    Sides,
    compare_levels,
    date,
    gather,
    ranks_differ,
    trimmed_means,
)

BOUNDARIES = 4  # of the best path, the newest ones, that a night looks at
FEWEST_BEFORE, FEWEST_AFTER = 5, 3  # nights on either side of a boundary
FULL_AFTER = 7  # nights after a boundary from which on the plain height is enough
STABLE = 1  # nights by which the newest boundary may have moved since the night before ...
RUN = 4  # nights beyond the cap on one side that are a level of their own, whatever the path says
UNSTABLE = 2.0  # ... else that much more evidence is asked for


@dataclass(frozen=True)
class Knob:
    """How much evidence a report needs."""

    penalty: float  # of a jump of the path, in squared scales
    rank_z: float
    height: float  # of the statistic
    early: float  # each night fewer than FULL_AFTER asks for 1 / early of the height more


KNOBS: dict[KnobName, Knob] = {
    "strict": Knob(15, 3.0, 3.9, early=3),
    "default": Knob(15, 3.0, 2.4, early=3),
    "sensitive": Knob(14, 2.8, 2.4, early=4),
}


@dataclass(frozen=True)
class Shift:
    """A level shift of one series. Positions count its nights that have a value; effects are in log units."""

    reported: int
    onset: int  # the first night of the new level
    onset_low: int
    onset_high: int
    effect: float  # positive: larger values
    low: float  # 95 %
    high: float
    score: float  # the statistic, less what few nights ask for more: to be held against the knob's height

    def moved_by(self, nights: int) -> "Shift":
        """The same, counted from another first night."""
        return replace(
            self,
            reported=self.reported + nights,
            onset=self.onset + nights,
            onset_low=self.onset_low + nights,
            onset_high=self.onset_high + nights,
        )


def replay(histories: Sequence[FloatArray], knob: Knob) -> list[list[Shift]]:
    """The reports of every history, night by night; each of shape (nights,), ln of positive values, none missing."""
    found: list[list[Shift]] = [[] for _ in histories]
    lengths = np.array([len(history) for history in histories], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    logs = np.full((len(histories), WINDOW - 1 + longest), np.nan)
    scales = np.full(logs.shape, np.nan)
    for row, history in enumerate(histories):
        if len(history):
            place = slice(WINDOW - 1, WINDOW - 1 + len(history))
            logs[row, place], scales[row, place] = history, running_scale(history[None, :])[0]
    last = np.zeros(len(histories), dtype=np.int64)
    for night in range(FEWEST_BEFORE + FEWEST_AFTER - 1, longest):
        rows = np.flatnonzero(lengths > night)
        begins = night - WINDOW + 1
        window = slice(night, night + WINDOW)
        recent, recent_scales = logs[rows, window], scales[rows, window]
        starts = best_paths(recent, recent_scales, knob.penalty)
        for row, shift in reports_of_night(recent, recent_scales, starts, WINDOW - 1, last[rows] - begins, knob):
            found[rows[row]].append(shift.moved_by(begins))
            last[rows[row]] = shift.onset + begins
    return found


def last_reports(logs: FloatArray, scales: FloatArray, knob: Knob) -> list[list[Shift]]:
    """The reports of each row, oldest first, as the nights of its window would have made them one after the other.

    logs and scales: (series, WINDOW), the newest night last, shorter series beginning with nan. Positions are columns.
    """
    starts = best_paths(logs, scales, knob.penalty)
    first = WINDOW - np.isfinite(logs).sum(axis=1)
    found: list[list[Shift]] = [[] for _ in logs]
    last = first.copy()
    begins = np.stack([_run_begins(logs, night) for night in range(WINDOW)], axis=1)
    for night in range(FEWEST_BEFORE + FEWEST_AFTER - 1, WINDOW):
        moved = (starts[:, night] > last) | begins[:, night]
        rows = np.flatnonzero(moved & (night - first >= FEWEST_BEFORE + FEWEST_AFTER - 1))
        if len(rows):
            for row, shift in reports_of_night(logs[rows], scales[rows], starts[rows], night, last[rows], knob):
                found[rows[row]].append(shift)
                last[rows[row]] = shift.onset
    return found


def window_scales(logs: FloatArray, floors: FloatArray | float = SMALLEST) -> FloatArray:
    """The running scale of rows that may begin with nan, which it keeps; `floors` is one for all, or one a row."""
    least = np.broadcast_to(floors, len(logs))
    scales = np.full(logs.shape, np.nan)
    lengths = np.isfinite(logs).sum(axis=1)
    for length in np.unique(lengths[lengths > 0]):
        rows = np.flatnonzero(lengths == length)
        scales[rows, logs.shape[1] - length :] = running_scale(logs[rows, logs.shape[1] - length :], least[rows, None])
    return scales


def reports_of_night(
    logs: FloatArray, scales: FloatArray, starts: IntArray, night: int, last: IntArray, knob: Knob
) -> list[tuple[int, Shift]]:
    """What a night reports, as (row, shift), a row's oldest first.

    logs, scales and starts: (series, nights), of which those up to `night` are looked at; last: (series,), the onset
    that was last reported, negative if it has left the window. All positions are columns.
    """
    found: list[tuple[int, Shift]] = []
    last = np.maximum(0, last)  # a negative column would be one of the newest nights
    path = _boundaries(starts, night, last)
    runs = _runs_beyond(logs, scales, starts, night, last)
    for boundaries, ends in [*reversed(path), (runs, np.full(len(logs), night + 1))]:
        rows = np.flatnonzero(
            (boundaries > 0) & (boundaries - last >= FEWEST_BEFORE) & (ends - boundaries >= FEWEST_AFTER)
        )
        if not len(rows):
            continue
        boundary, end = boundaries[rows], ends[rows]
        first, until = np.maximum(last[rows], boundary - SIDE), np.minimum(end, boundary + SIDE)
        sides = Sides(gather(logs, rows, first, boundary, until), scales[rows, night])
        dated = date(sides)
        onset = boundary + dated.moved
        levels = compare_levels(sides, dated.moved)
        more = 1 + np.maximum(0, FULL_AFTER - (end - boundary)) / knob.early
        unstable = (end > night) & (np.abs(starts[rows, night - 1] - boundary) > STABLE)
        more = np.where(unstable, UNSTABLE * more, more)
        passed = (until - onset >= FEWEST_AFTER) & (levels.statistic >= more * knob.height)
        chosen = np.flatnonzero(passed)
        if len(chosen):
            few = Sides(sides.nights[chosen], sides.scales[chosen])
            chosen = chosen[ranks_differ(few, dated.moved[chosen], knob.rank_z)]
        for index in chosen:
            row, effect, half = int(rows[index]), float(levels.effect[index]), 1.96 * float(levels.error[index])
            shift = Shift(
                reported=night,
                onset=int(onset[index]),
                onset_low=int(boundary[index] + dated.low[index]),
                onset_high=int(boundary[index] + dated.high[index]),
                effect=effect,
                low=effect - half,
                high=effect + half,
                score=float(levels.statistic[index] / more[index]),
            )
            found.append((row, shift))
            last[row] = shift.onset
    return found


def _boundaries(starts: IntArray, night: int, last: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Up to BOUNDARIES of each path's newest boundaries after `last` with the end of their segments, newest first; 0
    where a path has no more."""
    rows = np.arange(len(starts))
    found = []
    end = np.full(len(starts), night + 1, dtype=np.int64)
    boundary = starts[:, night]
    for _ in range(BOUNDARIES):
        boundary = np.where(boundary > last, boundary, 0)
        if not boundary.any():
            break
        found.append((boundary, end))
        end = boundary
        boundary = np.where(boundary > 0, starts[rows, np.maximum(0, boundary - 1)], 0)
    return found


def _runs_beyond(logs: FloatArray, scales: FloatArray, starts: IntArray, night: int, last: IntArray) -> IntArray:
    """The first of the newest RUN nights where all of them lie beyond what the path counts, on one side of the level
    before and of the two nights before; 0 where they do not, or where the path has a boundary there.

    A drift fits no level: to the path its nights are spikes, each cheaper than a jump, until it ends.
    """
    first = night - RUN + 1
    found = np.zeros(len(logs), dtype=np.int64)
    begins = _run_begins(logs, night)
    rows = np.flatnonzero(begins & (starts[:, night] < first - STABLE) & (first - last >= FEWEST_BEFORE))
    if not len(rows):
        return found
    begin = max(0, first - SIDE)
    before = np.where(np.arange(begin, first) >= last[rows, None], logs[rows, begin:first], np.nan)
    level, reach = trimmed_means(before), CAP * scales[rows, first - 1]
    run = logs[rows, first : night + 1]
    found[rows[(run.min(axis=1) > level + reach) | (run.max(axis=1) < level - reach)]] = first
    return found


def _run_begins(logs: FloatArray, night: int) -> BoolArray:
    """Whether the newest RUN nights all lie on one side of both nights before them."""
    first = night - RUN + 1
    if first < FEWEST_BEFORE:
        return np.zeros(len(logs), dtype=bool)
    run, neighbours = logs[:, first : night + 1], logs[:, first - 2 : first]
    return (run.min(axis=1) > neighbours.max(axis=1)) | (run.max(axis=1) < neighbours.min(axis=1))
