"""Wilcoxon's signed-rank test, exact, and the confidence interval that belongs to it (Walsh order statistics).

Sources: Wilcoxon 1945 (test), Tukey 1949 (interval), Pratt 1959 (zeros), Hollander and Wolfe, Nonparametric
Statistical Methods, chapter 3. Assumes independent pairs whose differences are symmetric about one centre; a coin for
the order within each pair gives the symmetry under "no difference".
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from torchbenchmark.statistics.hodges_lehmann import MOST_PAIRS, walsh_averages
from torchbenchmark.statistics.interval import Interval
from torchbenchmark.statistics.samples import FloatArray, finite_number, finite_vector, probability

Alternative = Literal["greater", "less", "two-sided"]
Zeros = Literal["pratt", "wilcoxon"]


@dataclass(frozen=True)
class SignedRank:
    statistic: float  # W+, the sum of the ranks of the positive differences; half-integers where ranks are tied
    p_value: float
    pairs: int  # whose sign was used: without zeros


def signed_rank_distribution(n: int) -> FloatArray:
    """P(W+ = w) for w = 0 ... n (n + 1) / 2 without ties or zeros, shape (n (n + 1) / 2 + 1,).

    Rank r is in the sum or not, each with probability 1/2: n steps of dynamic programming, exact to rounding.
    """
    if not 1 <= n <= MOST_PAIRS:
        raise ValueError(f"signed ranks of {n} pairs: from 1 to {MOST_PAIRS} pairs are meant")
    return _distribution_of_sum(np.arange(1, n + 1))


def walsh_order_statistic(n: int, level: float = 0.95) -> tuple[int, float]:
    """(k, attained): the k-th smallest and k-th largest Walsh average of n differences enclose the centre.

    k is the largest with confidence attained = 1 - 2 P(W+ <= k - 1) >= level, counted from 1: n = 12 at .95 gives k =
    14 of 78, the 14th and the 65th, which enclose with confidence .9575. ValueError if n is too small for the level.
    """
    probability(level, "level")
    cumulative = np.cumsum(signed_rank_distribution(n))
    k = int(np.searchsorted(cumulative, (1 - level) / 2 * (1 + 1e-12), side="right"))
    if k == 0:
        raise ValueError(
            f"an interval of level {level:g} from {n} pairs: at least {fewest_pairs(level)} are needed; "
            "measure more or ask for a lower level"
        )
    return k, float(1 - 2 * cumulative[k - 1])


def fewest_pairs(level: float = 0.95) -> int:
    """The fewest pairs with which a signed-rank interval of this level exists: 2 / 2^n <= 1 - level. .95 needs 6."""
    return int(np.ceil(np.log2(2 / (1 - probability(level, "level"))) - 1e-9))


def signed_rank_interval(differences: ArrayLike, level: float = 0.95) -> Interval:
    """The Hodges-Lehmann estimate with the interval of all centres that the two-sided test does not reject.

    differences: shape (n,), n >= fewest_pairs(level), such as log ratios of pairs; same unit out. Exact for any
    continuous symmetric distribution. With ties or zeros the closed interval covers at least as often as it says.
    """
    values = finite_vector(differences, "differences of pairs")
    averages = walsh_averages(values)
    k, attained = walsh_order_statistic(len(values), level)
    return Interval(float(np.median(averages)), float(averages[k - 1]), float(averages[-k]), attained)


def signed_rank_test(
    differences: ArrayLike, margin: float = 0.0, alternative: Alternative = "greater", *, zeros: Zeros = "pratt"
) -> SignedRank:
    """Exact p value of H0: the differences are symmetric about `margin` (or, one-sided, about less, about more).

    differences: shape (n,), n >= 1; margin in their unit. Ties share the mean of their ranks, and the null distribution
    is that of the ranks as they are, not of 1 ... n. Differences equal to the margin say nothing of direction: with
    `pratt` they take the lowest ranks and are then left out, with `wilcoxon` they are left out first. Two-sided is
    twice the smaller tail, at most 1. All differences zero: p = 1.
    """
    values = finite_vector(differences, "differences of pairs") - finite_number(margin, "margin")
    if len(values) > MOST_PAIRS:
        raise ValueError(f"differences of pairs: {len(values)} of them, at most {MOST_PAIRS} are meant")
    if zeros not in ("pratt", "wilcoxon"):
        raise ValueError(f"zeros {zeros!r}: choose pratt or wilcoxon")
    if zeros == "wilcoxon":
        values = values[values != 0]
    doubled_ranks = _doubled_midranks(np.abs(values))[values != 0]
    positive = values[values != 0] > 0
    statistic = int(doubled_ranks[positive].sum())
    distribution = _distribution_of_sum(doubled_ranks)
    at_most, at_least = float(distribution[: statistic + 1].sum()), float(distribution[statistic:].sum())
    p_values = {"greater": at_least, "less": at_most, "two-sided": 2 * min(at_least, at_most)}
    if alternative not in p_values:
        raise ValueError(f"alternative {alternative!r}: choose greater, less or two-sided")
    return SignedRank(statistic / 2, min(1.0, p_values[alternative]), len(doubled_ranks))


def _distribution_of_sum(weights: FloatArray) -> FloatArray:
    """P(sum = s) for s = 0 ... sum of all, where each of the integer weights is in the sum with probability 1/2."""
    distribution = np.zeros(int(weights.sum()) + 1)
    distribution[0] = 1.0
    reached = 0
    for weight in map(int, weights):
        reached += weight
        without = distribution[: reached + 1 - weight].copy()
        distribution[: reached + 1] /= 2
        distribution[weight : reached + 1] += without / 2
    return distribution


def _doubled_midranks(magnitudes: FloatArray) -> FloatArray:
    """Twice the ranks of the magnitudes, ties at the mean of their ranks: whole numbers."""
    _, inverse, counts = np.unique(magnitudes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (2 * last - counts + 1)[inverse]
