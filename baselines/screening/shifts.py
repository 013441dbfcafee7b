"""Level shifts of histories, found night by night: what a night reports depends on no later one.

Each night the best path through the last 150 nights gives boundaries; one that both tests of shift_test.py pass is
reported once, and what comes before it is no baseline any more. Few nights after it ask for more evidence. The method
was developed on the public nightly histories of docs/detection.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from baselines.screening.noise import FloatArray, running_scale
from baselines.screening.potts import CAP, IntArray, best_paths
from baselines.screening.shift_test import SIDE, compare_sides, trimmed_mean

WINDOW = 150  # nights
BOUNDARIES = 4  # of the best path, the newest ones, that a night looks at
FEWEST_BEFORE, FEWEST_AFTER = 5, 3  # nights on either side of a boundary
FULL_AFTER = 7  # nights after a boundary from which on the plain height is enough ...
EARLY = 3  # ... and each night fewer asks for 1 / EARLY of it more
STABLE = 1  # nights by which the newest boundary may have moved since the night before
REDATED = 3  # nights by which the onset may lie off the path's boundary, whose price knows no levels but the grid's
_AS_GOOD = 3.84  # of the squared misfit in scales: 95 % of chi squared with one degree
_BATCH = 4096  # windows at a time

KnobName = Literal["strict", "default", "sensitive"]


@dataclass(frozen=True)
class Knob:
    """How much evidence a report needs."""

    penalty: float  # of a jump of the path, in squared scales
    rank_z: float
    height: float  # of the statistic


KNOBS: dict[KnobName, Knob] = {
    "strict": Knob(16, 3.0, 3.8),
    "default": Knob(16, 3.0, 2.4),
    "sensitive": Knob(14, 2.2, 2.0),
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


def replay(histories: Sequence[FloatArray], knob: Knob) -> list[list[Shift]]:
    """The reports of every history, night by night; each of shape (nights,), ln of positive values, none missing."""
    found = []
    for history in histories:
        scales = running_scale(history[None, :])[0] if len(history) else history
        found.append(_replay_one(history, scales, knob))
    return found


def _replay_one(logs: FloatArray, scales: FloatArray, knob: Knob) -> list[Shift]:
    nights = len(logs)
    padded = [np.concatenate([np.full(WINDOW - 1, np.nan), array]) for array in (logs, scales)]
    windows, scale_windows = (np.lib.stride_tricks.sliding_window_view(array, WINDOW) for array in padded)
    reports: list[Shift] = []
    last = 0
    first = FEWEST_BEFORE + FEWEST_AFTER - 1
    for begin in range(first, nights, _BATCH):
        end = min(nights, begin + _BATCH)
        starts = best_paths(windows[begin:end], scale_windows[begin:end], knob.penalty).starts
        for night in range(begin, end):
            new = shifts_of_night(logs, scales, night, starts[night - begin], last, knob)
            reports += new
            last = new[-1].onset if new else last
    return reports


def shifts_of_night(
    logs: FloatArray, scales: FloatArray, night: int, starts: IntArray, last: int, knob: Knob
) -> list[Shift]:
    """What the night reports, given the starts of the best path in its window and the onset that was last reported."""
    offset = night - WINDOW + 1
    if starts[-1] + offset <= last:
        return []
    found = []
    end = night + 1
    boundaries: list[tuple[int, int]] = []  # (begin, end) of segments, newest first
    start = int(starts[-1])
    while start > 0 and start + offset > last and len(boundaries) < BOUNDARIES:
        boundaries.append((start + offset, end))
        end = start + offset
        start = int(starts[start - 1])
    for boundary, end in reversed(boundaries):
        if boundary - last < FEWEST_BEFORE or end - boundary < FEWEST_AFTER:
            continue
        if end == night + 1 and abs(int(starts[-2]) + offset - boundary) > STABLE:
            continue
        first, until = max(last, boundary - SIDE), min(end, boundary + SIDE)
        dated = date_onset(logs[first:until], boundary - first, float(scales[night]))
        onset = first + dated.onset
        if until - onset < FEWEST_AFTER:
            continue
        more = 1 + max(0, FULL_AFTER - (end - boundary)) / EARLY
        sides = compare_sides(logs[first:onset], logs[onset:until], float(scales[night]))
        if sides.passes(more * knob.height, knob.rank_z):
            half = 1.96 * sides.error
            found.append(
                Shift(
                    reported=night,
                    onset=onset,
                    onset_low=first + dated.low,
                    onset_high=first + dated.high,
                    effect=sides.effect,
                    low=sides.effect - half,
                    high=sides.effect + half,
                    score=sides.statistic / more,
                )
            )
            last = onset
    return found


@dataclass(frozen=True)
class Dated:
    """The first night of the new level, and the range of those that fit about as well."""

    onset: int
    low: int
    high: int


def date_onset(logs: FloatArray, boundary: int, scale: float) -> Dated:
    """Where between the levels on both sides of a boundary the change lies best: the least sum of squared distances in
    scales, each at most CAP^2, over the onsets at most REDATED nights away. logs: shape (nights,)."""
    before, after = (
        np.minimum(((logs - trimmed_mean(side)) / scale) ** 2, CAP**2) for side in (logs[:boundary], logs[boundary:])
    )
    onsets = np.arange(max(1, boundary - REDATED), min(len(logs) - 1, boundary + REDATED) + 1)
    misfits = np.array([before[:onset].sum() + after[onset:].sum() for onset in onsets])
    as_good = onsets[misfits <= misfits.min() + _AS_GOOD]
    return Dated(int(onsets[misfits.argmin()]), int(as_good[0]), int(as_good[-1]))
