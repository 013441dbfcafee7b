"""When a change may have come in: the nights that a likelihood interval leaves."""

from dataclasses import dataclass

import numpy as np

from baselines.screening.noise import FloatArray

_TAIL = 9.0  # of a squared distance: a spike says little of when a step came
_LOSS_SCALE = 1.3
_WITHIN = 9.0  # of the best split's loss, in squared distances
REACH = 7  # nights from the best split that the interval has at most
_SHIFTS = np.linspace(-2.0, 2.0, 9)  # of the older nights of another environment, in standard deviations


@dataclass(frozen=True)
class Onset:
    """Columns: the first night of the new level, and the first and last that it may have been."""

    best: int
    low: int
    high: int


def date_onset(logs: FloatArray, level: float, effect: float, noise: float, first: int, changed: int = 0) -> Onset:
    """The onset of a step of a known effect from a known level, in the nights from `first` on, tonight the last.

    logs: (nights,). `changed`: the first night of the present environment; the shift between both environments is
    known to about a night's noise, and costs what it takes.
    """
    nights = logs[first:]
    shifts = _SHIFTS if first < changed else np.zeros(1)
    older = (np.arange(first, len(logs)) < changed)[:, None] * shifts * noise
    distances = nights[:, None] + older - level
    old = _loss(distances / noise)
    new = _loss((distances - effect) / noise)
    none = np.zeros((1, len(shifts)))
    before = np.concatenate([none, np.cumsum(old, axis=0)])[:-1]  # nights before the split are at the old level
    after = np.cumsum(new[::-1], axis=0)[::-1]
    loss = (before + after + shifts**2).min(axis=1)
    best = int(np.argmin(loss))
    near = np.flatnonzero(loss <= loss[best] + _WITHIN)
    low, high = max(int(near[0]), best - REACH), min(int(near[-1]), best + REACH)
    return Onset(first + best, first + low, first + high)


def _loss(distances: FloatArray) -> FloatArray:
    return np.minimum(distances**2, _TAIL) / _LOSS_SCALE
