"""How many more pairs an inconclusive comparison needs: "inconclusive, needs 7 more pairs"."""

from bisect import bisect_left

import numpy as np
from scipy import special

from torchbenchmark.statistics.samples import finite_number, probability

MOST_PAIRS = 10_000  # beyond, the answer is that pairs will not do it
ROUNDING = 1e-12


def pairs_needed(
    variance: float,
    pairs: int,
    half_width: float,
    level: float = 0.95,
    *,
    prior_degrees: float = 0.0,
    assurance: float | None = None,
) -> int | None:
    """How many pairs beyond `pairs` until t(d0 + n - 1) s / sqrt(n) <= half_width; 0 if they do, None if over 10,000.

    variance: of one pair, in squared log units, as estimated from `pairs` >= 2 (moderated: with prior_degrees = d0).
    level: of the one interval, so the Sidak level where there are many. The variance is taken to stay: about half of
    the time more pairs will be needed in the end. With `assurance`, such as .8, the upper confidence bound of that
    level stands for the variance, and the width is reached with about that probability (Kupper and Hafner 1989).
    """
    spread = finite_number(variance, "variance", at_least=0)
    if pairs < 2:
        raise ValueError(f"{pairs} pairs: a variance needs at least 2")
    if finite_number(half_width, "half width") <= 0:
        raise ValueError(f"half width {half_width}: a number above 0 is needed, in log units (.01 is 1 %)")
    if not prior_degrees >= 0:
        raise ValueError(f"prior degrees {prior_degrees}: a number of at least 0 is needed")
    probability(level, "level")
    if assurance is not None:
        degrees = prior_degrees + pairs - 1
        quantile = 1.0 if np.isinf(degrees) else special.chdtri(degrees, probability(assurance, "assurance")) / degrees
        spread = max(spread, spread / float(quantile))

    def narrow(count: int) -> bool:
        degrees = prior_degrees + count - 1
        half = (1 + level) / 2
        critical = special.ndtri(half) if np.isinf(degrees) else special.stdtrit(degrees, half)
        return bool(critical * np.sqrt(spread / count) <= half_width * (1 + ROUNDING))

    counts = range(pairs, max(pairs, MOST_PAIRS) + 1)
    more = bisect_left(counts, True, key=narrow)
    return more if more < len(counts) else None
