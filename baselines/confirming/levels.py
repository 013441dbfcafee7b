"""The level before a window of nights, and how far the window is from it: which series are worth measuring again."""

from dataclasses import dataclass

import numpy as np

from baselines.screening.noise import FloatArray, IntArray, row_medians

WINDOWS = (1, 2, 3, 5, 7, 10, 14)  # the last nights that may be another level
LEVEL_NIGHTS = 40  # before them that give the level
ENOUGH_NIGHTS = 15  # of a level: fewer lean on what is known from before
FEWEST_NIGHTS = 3  # of a level of which nothing is known from before
_REACH = 2.5  # standard deviations from the middle of a level's few nights that one of them counts for at most
_PRIOR_COPIES = 2  # nights that what is known from before counts for in that middle
_CLIP = 3.5  # standard deviations that a night counts for at most ...
_LONE_CLIP, _LONE_SHARE = 9.0, 0.75  # ... and a lone one, by this share
_LEVEL_WEIGHT = 1.5  # a level of m nights, moved for w, says 1 / (1 + 1.5 w / m) of what an exactly known one would


@dataclass(frozen=True)
class Rows:
    """Series as the rules take them: shapes (series, nights) and (series,). Positions are columns, tonight last."""

    logs: FloatArray  # without the shifts of the environments; shorter rows begin with nan
    noise: FloatArray  # standard deviation of a night
    pair_sd: FloatArray
    segment: IntArray  # the first night of the segment: no window reaches before it
    began: IntArray  # the first night of the segment and of the environment: the level is that of the nights since
    prior: FloatArray  # the level as it was known before that; nan: not
    weight: FloatArray  # nights that it counts for


@dataclass(frozen=True)
class Moved:
    """Per series, shape (series,): the window that says most."""

    score: FloatArray  # standard deviations; -inf where nothing can be said
    window: IntArray  # nights
    effect: FloatArray  # median of the window less the level
    level: FloatArray  # before the window


def level_before(rows: Rows, window: int) -> tuple[FloatArray, FloatArray]:
    """(the level of each row before its last `window` nights, the nights that it is known from); nan if it is not."""
    last = rows.logs.shape[1] - window
    begin = max(0, last - LEVEL_NIGHTS)
    columns = np.arange(begin, last)
    before = np.where(columns >= rows.began[:, None], rows.logs[:, begin:last], np.nan)
    count = np.isfinite(before).sum(axis=1)
    median = row_medians(before)
    with_prior = np.isfinite(rows.prior)
    weight = np.where(with_prior, rows.weight, 0.0)
    # Of few nights a mean says more than a median; one that is far off says no more than that it is.
    middle = row_medians(np.column_stack([before, *[rows.prior] * _PRIOR_COPIES]))
    reach = _REACH * rows.noise[:, None]
    near = np.clip(before, middle[:, None] - reach, middle[:, None] + reach)
    total = np.nansum(near, axis=1) + np.where(with_prior, rows.weight * rows.prior, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        leaning = total / (count + weight)
    level = np.where((count < ENOUGH_NIGHTS) & with_prior, leaning, median)
    known = np.where(count < ENOUGH_NIGHTS, count + weight, count)
    return np.where(known >= np.where(with_prior, 1, FEWEST_NIGHTS), level, np.nan), known


def moved_tonight(rows: Rows) -> FloatArray:
    """Tonight's distance from the level, in standard deviations of a night, shape (series,)."""
    level, _ = level_before(rows, 1)
    return (rows.logs[:, -1] - level) / rows.noise


def moved(rows: Rows) -> Moved:
    """The score of each series over the windows of tonight, and its effect."""
    series, nights = rows.logs.shape
    best = Moved(np.full(series, -np.inf), np.zeros(series, dtype=np.int64), np.zeros(series), np.full(series, np.nan))
    for window in WINDOWS:
        if window >= nights:
            break
        level, known = level_before(rows, window)
        inside = rows.logs[:, nights - window :]
        distances = (inside - level[:, None]) / rows.noise[:, None]
        strength = np.abs(np.clip(distances, -_CLIP, _CLIP).mean(axis=1)) * np.sqrt(window)
        if window == 1:  # else one of 3.5 would rank below one of 3.4
            lone = np.abs(distances[:, 0])
            strength = np.maximum(strength, _LONE_SHARE * np.minimum(lone, _LONE_CLIP))
        with np.errstate(divide="ignore", invalid="ignore"):
            score = strength / np.sqrt(1 + _LEVEL_WEIGHT * window / known)
        effect = row_medians(inside) - level
        usable = np.isfinite(score) & (nights - window >= rows.segment)
        better = usable & (score > best.score)
        for array, values in ((best.score, score), (best.window, window), (best.effect, effect), (best.level, level)):
            array[better] = np.broadcast_to(values, series)[better]
    return best
