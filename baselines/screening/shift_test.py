"""Whether the levels on both sides of a boundary differ, by a floored test of trimmed means and a rank test, and where
between the two the change lies best. Many boundaries at once."""

from dataclasses import dataclass

import numpy as np

from baselines.screening.noise import BoolArray, FloatArray, IntArray
from baselines.screening.potts import CAP

SIDE = 20  # nights a side that are looked at
TRIM = 4  # 1 / TRIM of the nights is cut off at either end before the mean
VARIANCE_OF_TRIMMED = 1.3  # of a quarter-trimmed mean of normal values, against the plain mean
# A step is judged against these however many nights there are: slow wandering does not average out.
FLOOR, FLOOR_IN_SCALES = 1e-3, 0.3
FULL_SEPARATION = 0.95  # of the largest z that so few nights could give
REDATED = 3  # nights by which the onset may lie off the boundary of a path, which knows no levels but the grid's
SAME_SUM = 1e-6  # what rounding may move a squared misfit by: the same nights upside down are added up in another order
AS_GOOD = 3.84  # of the squared misfit in scales: 95 % of chi squared with one degree


@dataclass(frozen=True)
class Sides:
    """Nights around boundaries, shape (boundaries, 2 SIDE): those before end at column SIDE - 1, those after begin at
    column SIDE; nan where there is none. `scales`: of a night, shape (boundaries,)."""

    nights: FloatArray
    scales: FloatArray


@dataclass(frozen=True)
class Dated:
    """By how many nights the new level begins after the boundary; from low to high they fit about as well."""

    moved: IntArray
    low: IntArray
    high: IntArray


@dataclass(frozen=True)
class Levels:
    """What the test of means says, shape (boundaries,)."""

    effect: FloatArray  # ln(after / before)
    error: FloatArray  # its standard error without the floor
    statistic: FloatArray  # |effect| over its floored standard error


def gather(logs: FloatArray, rows: IntArray, first: IntArray, boundary: IntArray, until: IntArray) -> FloatArray:
    """The nights [first, boundary) and [boundary, until) of rows of `logs`, laid out as Sides has them."""
    columns = boundary[:, None] + np.arange(-SIDE, SIDE)
    there = (columns >= first[:, None]) & (columns < until[:, None])
    return np.where(there, logs[rows[:, None], np.where(there, columns, 0)], np.nan)


def date(sides: Sides) -> Dated:
    """Where between the levels of both sides the change lies best: the least sum of squared distances in scales, each
    at most CAP^2, over the onsets that are at most REDATED nights off and leave a night on each side. Of equal sums, as
    nights beyond CAP from both levels give, the onset nearest to the boundary is taken, and the earlier of two."""
    nights = sides.nights
    misfits = []
    for side in (nights[:, :SIDE], nights[:, SIDE:]):
        level = trimmed_means(side)
        squares = np.minimum(((nights - level[:, None]) / sides.scales[:, None]) ** 2, CAP**2)
        misfits.append(np.cumsum(np.where(np.isfinite(nights), squares, 0.0), axis=1))
    old, new = misfits
    moves = np.arange(-REDATED, REDATED + 1)
    at = SIDE + moves - 1
    costs = old[:, at] + new[:, -1:] - new[:, at]
    present = np.cumsum(np.isfinite(nights), axis=1)
    allowed = (present[:, at] >= 1) & (present[:, -1:] - present[:, at] >= 1)
    costs = np.where(allowed, costs, np.inf)
    least = costs.min(axis=1, keepdims=True)
    nearness = np.abs(moves) + (moves > 0) / 2
    best = np.where(costs <= least + SAME_SUM, nearness, np.inf).argmin(axis=1)
    as_good = costs <= least + AS_GOOD
    low, high = as_good.argmax(axis=1), len(moves) - 1 - as_good[:, ::-1].argmax(axis=1)
    return Dated(moves[best], moves[low], moves[high])


def compare_levels(sides: Sides, moved: IntArray) -> Levels:
    """The test of means at the dated boundaries.

    statistic = |D| / sqrt(1.3 s^2 (1/n + 1/m) + .001^2 + (.3 s)^2), D the difference of quarter-trimmed means.
    """
    before, after = _parts(sides.nights, moved)
    n, m = (np.isfinite(part).sum(axis=1) for part in (before, after))
    effect = trimmed_means(after) - trimmed_means(before)
    variance = VARIANCE_OF_TRIMMED * sides.scales**2 * (1 / n + 1 / m)
    return Levels(
        effect=effect,
        error=np.sqrt(variance),
        statistic=np.abs(effect) / np.sqrt(variance + FLOOR**2 + (FLOOR_IN_SCALES * sides.scales) ** 2),
    )


def ranks_differ(sides: Sides, moved: IntArray, rank_z: float) -> BoolArray:
    """Whether |U - nm/2| / sqrt(nm(n+m+1)/12) of Mann and Whitney (1947) reaches rank_z; where so few nights cannot
    reach it, whether they are all but fully separated."""
    before, after = _parts(sides.nights, moved)
    n, m = (np.isfinite(part).sum(axis=1) for part in (before, after))
    later, earlier = after[:, :, None], before[:, None, :]  # a comparison with nan is false
    more, less = ((later > earlier).sum(axis=(1, 2)), (later < earlier).sum(axis=(1, 2)))
    z = np.abs(more - less) / 2 / np.sqrt(n * m * (n + m + 1) / 12)
    return z >= np.minimum(rank_z, FULL_SEPARATION * np.sqrt(3 * n * m / (n + m + 1)))


def trimmed_means(values: FloatArray) -> FloatArray:
    """The mean of what is there of each row, less the largest and the smallest quarter (rounded; of three, one)."""
    ordered = np.sort(values, axis=1)  # nan comes last
    count = np.isfinite(ordered).sum(axis=1)
    cut = np.maximum(count // TRIM, count == 3)
    columns = np.arange(values.shape[1])
    kept = (columns >= cut[:, None]) & (columns < (count - cut)[:, None])
    return np.where(kept, ordered, 0.0).sum(axis=1) / np.maximum(1, count - 2 * cut)


def _parts(nights: FloatArray, moved: IntArray) -> tuple[FloatArray, FloatArray]:
    """Both sides of the dated boundary, without the columns that no dating reaches."""
    is_before = np.arange(nights.shape[1]) < (SIDE + moved)[:, None]
    before, after = slice(0, SIDE + REDATED), slice(SIDE - REDATED, None)
    return (
        np.where(is_before[:, before], nights[:, before], np.nan),
        np.where(is_before[:, after], np.nan, nights[:, after]),
    )
