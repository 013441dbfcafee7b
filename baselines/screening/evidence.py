"""The evidence of tonight that something moved, from the first night on: a windowed likelihood ratio with heavy tails.

It ranks, it does not decide: a report (shifts.py) waits until it is sure, a ranking tells at once where to look.
"""

from dataclasses import dataclass

import numpy as np

from baselines.screening.noise import READS, FloatArray, IntArray, row_medians
from baselines.screening.shift_test import FLOOR

WINDOWS = range(1, 15)  # the last nights that may be the new level
LEVEL_NIGHTS = 30  # before them that give the old one
FEWEST_LEVEL_NIGHTS = 3
# Degrees of Student's t: one night ten scales off says little more than one five scales off; two such nights say a lot.
TAIL = 3.0
PRICE_OF_A_NIGHT = 0.5  # nats: of two windows that say the same the shorter, newer one comes first
# In nats: a level known from m nights, and moved for n, says m / (m + 1.5 n) of what an exactly known one would.
_LEVEL_WEIGHT = 1.5
_DRIFT_NIGHTS = 60
_FEWEST_DRIFT_NIGHTS = 20


@dataclass(frozen=True)
class Evidence:
    """Per series, shape (series,): the window that says most, and what it says."""

    score: FloatArray  # nats less the price of the window; -inf where there are too few nights
    nights: IntArray  # of the new level, tonight among them
    effect: FloatArray  # ln(new / old)
    level_nights: IntArray


def step_evidence(logs: FloatArray, scales: FloatArray, began: IntArray) -> Evidence:
    """The largest log-likelihood ratio of a step n nights ago against none, over n = 1 ... 14.

    logs: (series, nights), tonight last, shorter series beginning with nan; scales: (series,), of the night before
    tonight (tonight's own knows the step); began: (series,), the first night of the current level, nights before it
    say nothing of it. Under both hypotheses nights are independent Student t around a median level.
    """
    series, nights = logs.shape
    sd = np.hypot(scales / READS, FLOOR)[:, None]
    best = Evidence(
        np.full(series, -np.inf),
        np.zeros(series, dtype=np.int64),
        np.zeros(series),
        np.zeros(series, dtype=np.int64),
    )
    for count in WINDOWS:
        first = nights - count
        if first < FEWEST_LEVEL_NIGHTS:
            break
        begin = max(0, first - LEVEL_NIGHTS)
        before = np.where(np.arange(begin, first) >= began[:, None], logs[:, begin:first], np.nan)
        known = np.isfinite(before).sum(axis=1)
        window = logs[:, first:]
        usable = (known >= FEWEST_LEVEL_NIGHTS) & np.isfinite(window).all(axis=1)
        old, new = row_medians(before), row_medians(window)
        ratio = (_misfit((window - old[:, None]) / sd) - _misfit((window - new[:, None]) / sd)).sum(axis=1)
        score = ratio * known / (known + _LEVEL_WEIGHT * count) - PRICE_OF_A_NIGHT * (count - 1)
        better = usable & (score > best.score)
        for array, values in (
            (best.score, score), (best.nights, count), (best.effect, new - old), (best.level_nights, known),
        ):  # fmt: skip
            array[better] = np.broadcast_to(values, series)[better]
    return best


def drift_evidence(logs: FloatArray, scales: FloatArray, began: IntArray) -> Evidence:
    """The log-likelihood ratio of a line through the nights of the current level against no slope, over the last 60.

    Theil (1950) and Sen (1968): the slope is the median over all pairs of nights. Arguments as of step_evidence; none
    for levels of under 20 nights.
    """
    series, nights = logs.shape
    begin = max(0, nights - _DRIFT_NIGHTS)
    positions = np.arange(begin, nights, dtype=np.float64)
    window = np.where(positions >= began[:, None], logs[:, begin:], np.nan)
    known = np.isfinite(window).sum(axis=1)
    candidates = np.flatnonzero((known >= _FEWEST_DRIFT_NIGHTS) & np.isfinite(window[:, -1]))
    found = Evidence(np.full(series, -np.inf), known.astype(np.int64), np.zeros(series), known.astype(np.int64))
    if not len(candidates):
        return found
    chosen, sd = window[candidates], np.hypot(scales[candidates] / READS, FLOOR)[:, None]
    early, late = np.triu_indices(len(positions), 1)
    slope = row_medians((chosen[:, late] - chosen[:, early]) / (positions[late] - positions[early]))
    line = slope[:, None] * positions
    line += row_medians(chosen - line)[:, None]
    flat = row_medians(chosen)[:, None]
    ratio = np.nansum(_misfit((chosen - flat) / sd) - _misfit((chosen - line) / sd), axis=1)
    found.score[candidates] = ratio - PRICE_OF_A_NIGHT * max(WINDOWS)
    found.effect[candidates] = slope * (known[candidates] - 1)
    return found


def _misfit(distances: FloatArray) -> FloatArray:
    """Minus the logarithm of Student's density, but for its constant."""
    return (TAIL + 1) / 2 * np.log1p(distances**2 / TAIL)
