"""A history in one line of text."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_BLOCKS = "▁▂▃▄▅▆▇█"
_USUAL = (2, 98)  # per cent of the columns that set the scale: a spike is a full block and flattens nothing else


def column_edges(nights: int, width: int) -> NDArray[np.int64]:
    """Where each column's nights begin, and the end of the last; no more columns than nights."""
    return np.linspace(0, nights, min(nights, width) + 1).astype(np.int64)


def sparkline(values: NDArray[np.float64], width: int) -> str:
    """One block a column, the median of its nights; as many columns as there are nights, at most `width`."""
    if not len(values):
        return ""
    edges = column_edges(len(values), width)
    columns = np.array([np.median(values[begin:end]) for begin, end in pairwise(edges)])
    low, high = np.percentile(columns, _USUAL)
    if high <= low:
        return _BLOCKS[3] * len(columns)
    heights = np.clip((columns - low) / (high - low), 0, 1) * (len(_BLOCKS) - 1)
    return "".join(_BLOCKS[round(height)] for height in heights)


def marks(nights: int, width: int, at: Sequence[tuple[int, str]]) -> str:
    """A line to stand under a sparkline: each mark under the column of its night."""
    edges = column_edges(nights, width)
    line = [" "] * (len(edges) - 1)
    for night, mark in at:
        line[int(np.searchsorted(edges, night, side="right")) - 1] = mark
    return "".join(line).rstrip()
