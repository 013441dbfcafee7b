"""How long the sentences of a batch are: spread as in a corpus, and the same for every batch of its size."""

import math
from statistics import NormalDist


def sentence_lengths(sentences: int, median: float, spread: float, shortest: int, longest: int) -> list[int]:
    """Lengths in words, rising: evenly spaced quantiles of a log-normal distribution, kept between the two bounds.

    `spread` is the standard deviation of the logarithm. Nothing is drawn: the padding of a batch follows from its size.
    """
    places = ((sentence + 0.5) / sentences for sentence in range(sentences))
    lengths = (round(median * math.exp(spread * NormalDist().inv_cdf(place))) for place in places)
    return [min(max(length, shortest), longest) for length in lengths]
