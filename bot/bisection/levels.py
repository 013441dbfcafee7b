"""What the pairs of one commit say of its level, and which levels a change may lead to.

A level is a log ratio against the good end, in units of about one pair's spread, on a fixed grid. Pairs are Student's t
about the level of their commit, so that a wild one moves nothing far. What all pairs of one build share,
b ~ N(0, shared sd), is integrated by a convolution. The scale of the pairs and the shared sd are only partly known, and
integrated over: a noise is one scale with one shared sd.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SPACING = 0.25
REACH = 8.0  # of the grid, in units
ROOM = 5.5  # the largest level of the bad end in units: some more is left for what lies between the ends
LEVELS: Array = np.arange(-REACH, REACH + SPACING / 2, SPACING)
ZERO = len(LEVELS) // 2

NARROWEST = SPACING / 8  # an sd below which a normal lies in one cell of the grid

LEAST_LOG = -50.0  # against the likeliest level: below it all are alike, and sums of many commits stay above zero

DEGREES = 5.0
# A t of 5 degrees fits normal noise of sd 1 best with a scale of .85: the scales are about what is known of the pairs.
TYPICAL_SCALE = 0.85
SCALES: Array = TYPICAL_SCALE * np.array([0.55, 0.82, 1.22, 1.8])
SCALE_WEIGHTS: Array = np.array([0.1, 0.4, 0.4, 0.1])  # about a factor of 1.4, as A/A tables differ from a night
SHARED: tuple[float, ...] = (0.5, 2.0)  # times what the shared sd is taken for
SHARED_WEIGHTS: Array = np.array([0.65, 0.35])
NOISES = len(SCALES) * len(SHARED)  # all scales of the first shared sd, then of the next
NOISE_WEIGHTS: Array = np.outer(SHARED_WEIGHTS, SCALE_WEIGHTS).ravel()


@lru_cache(maxsize=20_000)
def level_curve(values: tuple[float, ...], unit: float, pair_sd: float, shared_sd: float) -> Array:
    """The likelihood of a commit's pairs by noise and level, shape (NOISES, levels), up to one factor for all.

    All arguments are in log units.
    """
    pairs = np.clip(np.array(values) / unit, -REACH, REACH)
    scales = (SCALES * pair_sd / unit)[:, None, None]
    distance = (pairs - LEVELS[:, None]) / scales
    logs = (-(DEGREES + 1) / 2 * np.log1p(distance**2 / DEGREES) - np.log(scales)).sum(axis=-1)
    curve = np.exp(np.maximum(logs - logs.max(), LEAST_LOG))
    return np.concatenate([curve @ smear(times * shared_sd / unit) for times in SHARED])


@lru_cache(maxsize=64)
def smear(sd: float) -> Array:
    """N(difference of two levels; 0, sd) on the grid, shape (levels, levels); each row sums to one."""
    kernel = np.exp(-(((LEVELS[:, None] - LEVELS) / max(sd, NARROWEST)) ** 2) / 2)
    return kernel / kernel.sum(axis=1, keepdims=True)


@lru_cache(maxsize=64)
def step_prior(smallest: float) -> Array:
    """How likely a change leads from one level (row) to another (column); shape (levels, levels).

    Above the smallest effect the density falls as 1 / |step|, every factor being as likely; below, it falls with the
    fourth power, so that pairs can tell no change from any (a non-local prior, Johnson and Rossell 2010). Steps that
    leave the grid are lost.
    """
    step = np.abs(LEVELS[:, None] - LEVELS)
    density = np.where(step < smallest, (step / smallest) ** 4 / smallest, 1 / np.maximum(step, smallest))
    return density / density[ZERO].sum()


def unit_of(pair_sd: float, shared_sd: float, end: float) -> float:
    """One unit of the grid, in log units: the known spread of a pair, doubled until all that may be seen lies in reach.

    That is the level of the bad end, and what builds share. Beside a large change a pair's spread is smaller than the
    grid can tell, and need not be told: `sd_on_grid` is then what it is taken for.
    """
    largest = max(abs(end) / ROOM, shared_sd * SHARED[-1])
    return float(pair_sd * 2 ** np.ceil(np.log2(max(largest / pair_sd, 1.0))))


def sd_on_grid(pair_sd: float, unit: float) -> float:
    """The spread of a pair, but no less than what is a few steps of the grid."""
    return max(pair_sd, 2 * SPACING * unit)


def smallest_on_grid(smallest: float, unit: float) -> float:
    """The smallest effect that is looked for, between what the grid can tell and what it can hold."""
    return float(np.clip(smallest, 2 * SPACING * unit, REACH / 2 * unit))
