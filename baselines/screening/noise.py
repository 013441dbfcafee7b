"""How much a series moves from one night to the next when nothing happens: a running robust scale, causal.

A step adds one large distance from the nights before it, a drift adds a little to each; the median over many nights
sees neither. Heavy tails and two modes are the normal case: a scale that one spike moves would be blind after it.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NEIGHBOURS = 3  # a night is held against the median of so many before it
WINDOW = 60  # distances, the newest among them
SMALLEST = 1e-4  # no clock and no count of a machine is steadier than .01 %
READS = 1.2  # standard deviations that the scale says of independent normal noise: the three nights are noisy too
_MAD_TO_SD = 1.4826


def row_medians(values: FloatArray) -> FloatArray:
    """Of each row's values that are there (sorting puts nan last); nan if none is."""
    ordered = np.sort(values, axis=1)
    count = np.isfinite(ordered).sum(axis=1)
    rows = np.arange(len(ordered))
    middle = ordered[rows, np.maximum(0, (count - 1) // 2)] + ordered[rows, np.minimum(count // 2, values.shape[1] - 1)]
    return np.where(count > 0, middle / 2, np.nan)


def running_scale(logs: FloatArray, floor: float = SMALLEST) -> FloatArray:
    """Per night, the scale that the nights up to it show; shape (series, nights) in and out, in log units.

    s_t = 1.4826 median(|y - median(three nights before)|) over the last 60 nights, at least `floor` (scalar or one a
    series). Missing nights must have been left out. The first night has no distance, and the floor.
    """
    rows, nights = logs.shape
    distances = np.full((rows, nights), np.nan)
    for night in range(1, nights):
        before = logs[:, max(0, night - NEIGHBOURS) : night]
        distances[:, night] = np.abs(logs[:, night] - _median(before))
    scales = np.empty((rows, nights))
    scales[:, :1] = 0.0
    for night in range(1, nights):
        scales[:, night] = _median(distances[:, max(1, night - WINDOW + 1) : night + 1])
    return np.maximum(_MAD_TO_SD * scales, floor)


def _median(values: NDArray) -> NDArray:
    """Of each row, none of whose values is missing: numpy's own looks for those first, and sorts few faster than it
    selects among them."""
    count = values.shape[1]
    ordered = np.sort(values, axis=1)
    return (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2
