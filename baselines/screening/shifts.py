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
from baselines.screening.potts import IntArray, best_paths
from baselines.screening.shift_test import SIDE, Sides, compare_sides

WINDOW = 150  # nights
BOUNDARIES = 4  # of the best path, the newest ones, that a night looks at
FEWEST_BEFORE, FEWEST_AFTER = 5, 3  # nights on either side of a boundary
FULL_AFTER = 7  # nights after a boundary from which on the plain height is enough ...
EARLY = 4  # ... and each night fewer asks for 1 / EARLY of it more
STABLE = 1  # nights by which the newest boundary may have moved since the night before
_BATCH = 4096  # windows at a time

KnobName = Literal["strict", "default", "sensitive"]


@dataclass(frozen=True)
class Knob:
    """How much evidence a report needs."""

    penalty: float  # of a jump of the path, in squared scales
    rank_z: float
    height: float  # of the statistic


KNOBS: dict[KnobName, Knob] = {
    "strict": Knob(16, 3.0, 3.85),
    "default": Knob(16, 3.0, 2.4),
    "sensitive": Knob(14, 2.0, 1.9),
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
    for onset, end in reversed(boundaries):
        after = end - onset
        if onset - last < FEWEST_BEFORE or after < FEWEST_AFTER:
            continue
        if end == night + 1 and abs(int(starts[-2]) + offset - onset) > STABLE:
            continue
        more = 1 + max(0, FULL_AFTER - after) / EARLY
        before = logs[max(last, onset - SIDE) : onset]
        sides = compare_sides(before, logs[onset : min(end, onset + SIDE)], float(scales[night]))
        if sides.passes(more * knob.height, knob.rank_z):
            found.append(_shift(logs, night, onset, sides, sides.statistic / more))
            last = onset
    return found


def _shift(logs: FloatArray, night: int, onset: int, sides: Sides, score: float) -> Shift:
    half = 1.96 * sides.error
    return Shift(night, onset, onset, onset, sides.effect, sides.effect - half, sides.effect + half, score)
