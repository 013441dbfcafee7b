"""Level shifts of whole histories, with hindsight: for pages, and for cutting a history into segments again.

The same path, dating and tests as night by night (shifts.py), over all nights at once: both sides of a boundary are
known in full, so nothing waits, and a boundary that does not stand gives its nights to its neighbours.
"""

from collections.abc import Sequence

import numpy as np

from baselines.screening.noise import FloatArray, IntArray, row_medians, running_scale
from baselines.screening.potts import best_paths
from baselines.screening.shift_test import SIDE, Sides, compare_levels, date, gather, ranks_differ
from baselines.screening.shifts import FEWEST_AFTER, FEWEST_BEFORE, Knob, Shift


def segment_again(histories: Sequence[FloatArray], knob: Knob) -> list[list[Shift]]:
    """The shifts of every history, each of shape (nights,), ln of positive values, none missing.

    All are reported in the last night, which is when they are known.
    """
    return [_shifts(np.asarray(history, dtype=np.float64), knob) for history in histories]


def _shifts(logs: FloatArray, knob: Knob) -> list[Shift]:
    nights = len(logs)
    if nights < FEWEST_BEFORE + FEWEST_AFTER:
        return []
    scales = _known_from_both_sides(logs)
    starts = best_paths(logs[None, :], scales[None, :], knob.penalty)[0]
    boundaries = _backwards(starts)
    while boundaries:
        tested = _test(logs, scales, np.array(boundaries), knob)
        weakest = int(np.argmin([score if stands else -1.0 for _, score, stands in tested]))
        if tested[weakest][2]:
            return [shift for shift, _, _ in tested]
        del boundaries[weakest]
    return []


def _known_from_both_sides(logs: FloatArray) -> FloatArray:
    """The smaller of what the nights before and those after say that a night spreads by: a noise that began or ended
    is not carried over its end, and the first nights are as well known as the last."""
    before, after = running_scale(logs[None, :])[0], running_scale(logs[None, ::-1])[0][::-1]
    whole = float(row_medians(before[None, :])[0])
    before[: FEWEST_BEFORE + 1], after[-FEWEST_BEFORE - 1 :] = whole, whole
    return np.minimum(before, after)


def _backwards(starts: IntArray) -> list[int]:
    """The boundaries of the best path through all nights, oldest first."""
    found: list[int] = []
    end = len(starts) - 1
    while (boundary := int(starts[end])) > 0:
        found.append(boundary)
        end = boundary - 1
    return found[::-1]


def _test(logs: FloatArray, scales: FloatArray, boundaries: IntArray, knob: Knob) -> list[tuple[Shift, float, bool]]:
    """(the shift, its statistic, whether it stands) of every boundary between its neighbours."""
    before = np.concatenate([[0], boundaries[:-1]])
    after = np.concatenate([boundaries[1:], [len(logs)]])
    first, until = np.maximum(before, boundaries - SIDE), np.minimum(after, boundaries + SIDE)
    rows = np.zeros(len(boundaries), dtype=np.int64)
    around = np.maximum(scales[boundaries - 1], scales[np.minimum(boundaries + FEWEST_AFTER, len(logs) - 1)])
    sides = Sides(gather(logs[None, :], rows, first, boundaries, until), around)
    dated = date(sides)
    levels = compare_levels(sides, dated.moved)
    ranks = ranks_differ(sides, dated.moved, knob.rank_z)
    found = []
    for index, boundary in enumerate(map(int, boundaries)):
        onset = boundary + int(dated.moved[index])
        enough = onset - int(before[index]) >= FEWEST_BEFORE and int(after[index]) - onset >= FEWEST_AFTER
        effect, half = float(levels.effect[index]), 1.96 * float(levels.error[index])
        score = float(levels.statistic[index])
        shift = Shift(
            reported=len(logs) - 1,
            onset=onset,
            onset_low=boundary + int(dated.low[index]),
            onset_high=boundary + int(dated.high[index]),
            effect=effect,
            low=effect - half,
            high=effect + half,
            score=score,
        )
        found.append((shift, score, bool(enough and ranks[index] and score >= knob.height)))
    return found
