"""Piecewise constant levels through a noisy series: robust Potts segmentation on a grid of levels, by dynamic
programming over the nights (Potts functional with a price per jump; Storath and Weinmann 2014; the truncated squares
are Tukey's biweight in spirit).

The best path may change its level several times, which a search for the single best split cannot: beside a large step
that one finds splits a few nights too early, and the rest of the step again later.
"""

import numpy as np
from numpy.typing import NDArray

from baselines.screening.noise import FloatArray, IntArray

CAP = 3.0  # in scales: what is further away than this costs no more, so that a spike is cheaper than two jumps
STEP = 0.4  # of the grid, in scales


def best_paths(logs: FloatArray, scales: FloatArray, penalty: float) -> IntArray:
    """Where the current segment of the best path begins, for every night of each window; (windows, nights) in and out.

    Windows shorter than the others begin with nan. F_k(t) = min(F_k(t-1), min_j F_j(t-1) + penalty) +
    min(((y_t - L_k) / s_t)^2, CAP^2); where the second is the smaller one, a segment begins at t. F of a night needs no
    later one: starts[:, t] is what was known at t, but for the grid L, which is made of the whole window.
    """
    windows, nights = logs.shape
    there = np.isfinite(logs)
    values = np.where(there, logs, 0.0).astype(np.float32)
    weights = np.where(there, 1 / scales, 0.0).astype(np.float32)  # a night that is not there fits every level
    # In halves of powers of two, so that the grid of a night is that of the nights before it, most of the time.
    step = np.exp2(np.rint(2 * np.log2(STEP * np.nanmedian(np.where(there, scales, np.nan), axis=1))) / 2)
    levels = _grid(logs, step)
    starts = np.zeros((windows, nights), dtype=np.int64)
    rows = np.arange(windows)
    cost = np.zeros_like(levels)
    misfit = np.empty_like(levels)
    begun = np.zeros(levels.shape, dtype=np.int32)
    cap = np.float32(CAP**2)
    for night in range(nights):
        if night:
            jump = cost.min(axis=1, keepdims=True) + np.float32(penalty)
            begun[jump < cost] = night
            np.minimum(cost, jump, out=cost)
        np.subtract(levels, values[:, night, None], out=misfit)
        misfit *= weights[:, night, None]
        np.square(misfit, out=misfit)
        np.minimum(misfit, cap, out=misfit)
        cost += misfit
        starts[:, night] = begun[rows, cost.argmin(axis=1)]
    return starts


def _grid(logs: FloatArray, step: FloatArray) -> NDArray[np.float32]:
    """The multiples of each window's step that its values round to, shape (windows, levels).

    Where a window has fewer than others its last one is repeated. No level far from all values could be a segment's.
    """
    ticks = np.rint(logs / step[:, None])
    ticks = np.where(np.isnan(ticks), np.nanmax(ticks, axis=1, keepdims=True), ticks)
    ticks.sort(axis=1)
    new = np.ones(ticks.shape, dtype=bool)
    new[:, 1:] = ticks[:, 1:] != ticks[:, :-1]
    place = np.cumsum(new, axis=1) - 1
    levels = np.repeat(ticks[:, -1:], int(place[:, -1].max()) + 1, axis=1)
    np.put_along_axis(levels, place, ticks, axis=1)
    return (levels * step[:, None]).astype(np.float32)
