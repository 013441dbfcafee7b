"""The sign-flip permutation test of a mean: without a difference a pair's sign is as likely as its opposite.

Source: Fisher 1935 (The Design of Experiments, section 21); Monte Carlo p values after Phipson and Smyth 2010.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from torchbenchmark.statistics.samples import FloatArray, finite_number, finite_vector
from torchbenchmark.statistics.signed_rank import Alternative

MOST_PAIRS_EXACT = 20  # 2^20 sums take 8 MiB
ROUNDING = 1e-12  # sums that differ by less, relative to the sum of magnitudes, are the same sum in another order
_SIGNS_AT_ONCE = 2**22


@dataclass(frozen=True)
class SignFlip:
    mean: float  # of the differences
    p_value: float
    exact: bool  # all 2^n flips were counted
    flips: int


def sign_flip_test(
    differences: ArrayLike,
    margin: float = 0.0,
    alternative: Alternative = "greater",
    *,
    flips: int = 100_000,
    seed: int = 0,
) -> SignFlip:
    """P(mean of differences - margin with random signs >= the observed mean), observed flip included.

    differences: shape (n,), n >= 1, such as log ratios; margin in their unit. Exact for n <= 20, all 2^n; beyond,
    from `flips` random ones by `seed`, p = (1 + hits) / (1 + flips), which never errs towards significance. Assumes
    independent pairs, symmetric about the margin. The smallest p is 2^-n: 7 pairs for .01, 10 for .001. Two-sided
    counts by magnitude.
    """
    raw = finite_vector(differences, "differences of pairs")
    values = raw - finite_number(margin, "margin")
    if alternative not in ("greater", "less", "two-sided"):
        raise ValueError(f"alternative {alternative!r}: choose greater, less or two-sided")
    if alternative == "less":
        values = -values
    slack = ROUNDING * float(np.abs(values).sum())
    observed = float(values.sum())
    if alternative == "two-sided":
        observed = abs(observed)
    exact = len(values) <= MOST_PAIRS_EXACT
    if exact:
        sums = all_flipped_sums(values)
        hits, tried = _hits(sums, observed - slack, alternative), len(sums)
        return SignFlip(float(raw.mean()), hits / tried, True, tried)
    if flips < 1:
        raise ValueError(f"flips {flips}: at least 1 is needed, 100000 is usual")
    generator = np.random.default_rng(seed)
    hits, left = 0, flips
    while left:
        batch = min(left, max(1, _SIGNS_AT_ONCE // len(values)))
        signs = generator.integers(0, 2, size=(batch, len(values)), dtype=np.int8) * 2 - 1
        hits += _hits(signs @ values, observed - slack, alternative)
        left -= batch
    return SignFlip(float(raw.mean()), (1 + hits) / (1 + flips), False, flips)


def all_flipped_sums(values: FloatArray) -> FloatArray:
    """The sums of `values`, shape (n,), under all 2^n choices of signs, in no order worth knowing."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums + value, sums - value))
    return sums


def _hits(sums: FloatArray, threshold: float, alternative: Alternative) -> int:
    return int(np.count_nonzero((np.abs(sums) if alternative == "two-sided" else sums) >= threshold))
