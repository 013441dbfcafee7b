"""What a measurement is expected to tell, in bits, of whether a change has happened by the commit that is measured."""

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy import special

from bot.bisection.levels import Array

NODES, NODE_WEIGHTS = hermegauss(15)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


def information(chance: Array, separation: Array) -> Array:
    """I(B; X) for B = 1 with a chance and X ~ N(separation B, 1), by Gauss-Hermite quadrature; broadcast.

    Infinite separation tells B: the entropy of the chance.
    """
    chance = np.clip(chance, 0.0, 1.0)[..., None]
    gap = np.minimum(separation, 12.0)[..., None]  # beyond that two normals do not overlap
    with np.errstate(divide="ignore"):
        prior = np.log(chance) - np.log1p(-chance)
    # log odds after an x that came from either side
    without = prior + gap * NODES - gap**2 / 2
    having = prior + gap * NODES + gap**2 / 2
    left = (1 - chance[..., 0]) * (_entropy(without) @ NODE_WEIGHTS) + chance[..., 0] * (
        _entropy(having) @ NODE_WEIGHTS
    )
    return np.maximum(_entropy(prior)[..., 0] - left, 0.0)


def _entropy(log_odds: Array) -> Array:
    """Of a coin with these log odds, in bits."""
    chance = special.expit(log_odds)
    return (special.entr(chance) + special.entr(1 - chance)) / np.log(2)
