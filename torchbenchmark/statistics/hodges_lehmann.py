"""The one-sample Hodges-Lehmann estimate: the median of the means of all pairs of observations (Walsh averages)."""

import numpy as np
from numpy.typing import ArrayLike

from torchbenchmark.statistics.samples import FloatArray, finite_vector

# n (n + 1) / 2 averages are held at once. Who comes with more has iterations, and should collapse them first.
MOST_PAIRS = 2000


def walsh_averages(differences: ArrayLike) -> FloatArray:
    """(x_i + x_j) / 2 for all i <= j, ascending. differences: shape (n,), 1 <= n <= 2000; result: (n (n + 1) / 2,).

    Source: Walsh 1949.
    """
    values = finite_vector(differences, "differences of pairs")
    if len(values) > MOST_PAIRS:
        raise ValueError(
            f"differences of pairs: {len(values)} of them, at most {MOST_PAIRS} are meant; "
            "collapse the iterations of each process to its location first"
        )
    first, second = np.triu_indices(len(values))
    return np.sort(values[first] / 2 + values[second] / 2)


def hodges_lehmann(differences: ArrayLike) -> float:
    """The median of the Walsh averages, in the unit of the differences.

    Estimates the centre of a symmetric distribution: nearly as sharp as the mean under normal noise (95.5 %), and up to
    29 % of wild pairs cannot carry it away. Of an asymmetric distribution it is the pseudo-median, neither mean nor
    median. Source: Hodges and Lehmann 1963.
    """
    return float(np.median(walsh_averages(differences)))
