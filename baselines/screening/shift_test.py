"""Whether the levels on both sides of a boundary differ: a floored test of trimmed means, and a rank test."""

import math
from dataclasses import dataclass

import numpy as np

from baselines.screening.noise import FloatArray

SIDE = 20  # nights a side that are looked at
TRIM = 4  # 1 / TRIM of the nights is cut off at either end before the mean
VARIANCE_OF_TRIMMED = 1.3  # of a quarter-trimmed mean of normal values, against the plain mean
# A step is judged against these however many nights there are: slow wandering does not average out.
FLOOR, FLOOR_IN_SCALES = 1e-3, 0.3
FULL_SEPARATION = 0.95  # of the largest z that so few nights could give


@dataclass(frozen=True)
class Sides:
    """What both tests say of a boundary."""

    effect: float  # ln(after / before)
    error: float  # its standard error without the floor
    statistic: float  # |effect| over its floored standard error
    rank_z: float
    largest_rank_z: float  # full separation

    def passes(self, height: float, rank_z: float) -> bool:
        return self.statistic >= height and self.rank_z >= min(rank_z, FULL_SEPARATION * self.largest_rank_z)


def trimmed_mean(values: FloatArray) -> float:
    cut = len(values) // TRIM
    return float(np.sort(values)[cut : len(values) - cut].mean())


def compare_sides(before: FloatArray, after: FloatArray, scale: float) -> Sides:
    """Both sides as logarithms, shape (n,) and (m,), n and m at least 1; `scale` of a night, in log units.

    statistic = |D| / sqrt(1.3 s^2 (1/n + 1/m) + .001^2 + (.3 s)^2), D the difference of quarter-trimmed means.
    rank_z: |U - nm/2| / sqrt(nm(n+m+1)/12) of Mann and Whitney (1947), without a correction for ties.
    """
    n, m = len(before), len(after)
    effect = trimmed_mean(after) - trimmed_mean(before)
    variance = VARIANCE_OF_TRIMMED * scale**2 * (1 / n + 1 / m)
    return Sides(
        effect=effect,
        error=math.sqrt(variance),
        statistic=abs(effect) / math.sqrt(variance + FLOOR**2 + (FLOOR_IN_SCALES * scale) ** 2),
        rank_z=_rank_z(before, after),
        largest_rank_z=math.sqrt(3 * n * m / (n + m + 1)),
    )


def _rank_z(before: FloatArray, after: FloatArray) -> float:
    n, m = len(before), len(after)
    differences = np.sign(after[:, None] - before[None, :])
    return abs(float(differences.sum())) / 2 / math.sqrt(n * m * (n + m + 1) / 12)
