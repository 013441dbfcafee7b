"""Runners of one class that take turns: each is a little faster or slower than the others, for good."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from baselines.screening.noise import FloatArray

FEWEST_NEIGHBOURS = 5  # nights of one runner beside a night of the other, before an offset is believed


def on_one_runner(logs: FloatArray, runners: Sequence[str]) -> FloatArray:
    """The nights as the newest night's runner would have had them, shape (nights,) in and out, oldest first.

    A runner's offset is the median difference between neighbouring nights of the two: a step of the build lies
    between few of them, and so does not count as a runner's. A runner with too few neighbours, and a night whose runner
    is not known (""), is taken as it is: machines that are new every night have no offset that could be known.
    """
    aligned = np.array(logs, dtype=np.float64)
    for turn in _turns(tuple(runners)):
        differences = logs[turn.second] - logs[turn.first]
        aligned[turn.nights] -= np.median(turn.signs * differences)
    return aligned


@dataclass(frozen=True)
class _Turns:
    """Another runner than the newest night's: its nights, and those of the two that follow each other."""

    nights: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    signs: FloatArray  # of second less first: 1 where the second is the other runner's


@lru_cache(maxsize=64)  # the tests of a night ran in the same nights, most of them
def _turns(runners: tuple[str, ...]) -> tuple[_Turns, ...]:
    here = runners[-1] if runners else ""
    found = []
    for other in sorted({*runners} - {here, ""}):
        pair = np.array([night for night, runner in enumerate(runners) if runner in (here, other)])
        is_other = np.array([runners[night] == other for night in pair])
        turns = is_other[1:] != is_other[:-1]
        if turns.sum() >= FEWEST_NEIGHBOURS:
            signs = np.where(is_other[1:][turns], 1.0, -1.0)
            found.append(_Turns(pair[is_other], pair[:-1][turns], pair[1:][turns], signs))
    return tuple(found)
