"""Variances of few pairs, shrunk towards what is known of the series: Smyth's moderated t (2004, the method of limma).

Six pairs say little of a variance, and a series that looks steady by luck makes a false alarm. The A/A study knows the
usual variance s0^2 of each series, worth d0 degrees of freedom; tonight's s^2 has d. Together, as posterior mean of
1/variance under a scaled inverse chi-squared prior:

    s_post^2 = (d0 s0^2 + d s^2) / (d0 + d),   d0 + d degrees of freedom.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from torchbenchmark.statistics.samples import FloatArray, finite_vector, same_length

FEWEST_SERIES_TO_REFIT = 3  # a scale and a spread of variances take two
SURE_OF_SPREAD = 0.8  # how sure it is that the variances of a night spread by no more than is held against the prior
_NEWTON_STEPS = 50


@dataclass(frozen=True, eq=False)
class VariancePrior:
    """What is known of the variance of each series before these pairs."""

    variance: FloatArray  # s0^2, shape (m,): of ONE pair's log ratio, not of a mean over pairs
    degrees: FloatArray  # d0, shape (m,), >= 0; infinite where the variance is known for certain, 0 where nothing is

    def __post_init__(self) -> None:
        variance = finite_vector(self.variance, "prior variances")
        degrees = np.array(self.degrees, dtype=np.float64)
        degrees = np.full(len(variance), degrees[()]) if degrees.ndim == 0 else degrees
        same_length(variance, degrees, "prior variances and their degrees of freedom")
        if degrees.ndim != 1 or not (degrees >= 0).all():
            raise ValueError(f"prior degrees of freedom {degrees}: numbers of at least 0 are needed, one a series")
        if not (variance[degrees > 0] > 0).all():
            raise ValueError("prior variances: one is not above 0; a channel that never varies is compared exactly")
        object.__setattr__(self, "variance", variance)
        object.__setattr__(self, "degrees", degrees)

    @property
    def known(self) -> NDArray[np.bool_]:
        return self.degrees > 0


@dataclass(frozen=True, eq=False)
class Moderated:
    variance: FloatArray  # s_post^2, shape (m,)
    degrees: FloatArray  # d0 + d, shape (m,)


def moderate(variances: ArrayLike, degrees: float, prior: VariancePrior | None) -> Moderated:
    """Shrink sample variances, shape (m,), each with `degrees` = n - 1 degrees of freedom, towards the prior.

    Without a prior they stay as they are. Assumes normal pairs and that the prior holds tonight: see `refit_prior`.
    """
    sample = finite_vector(variances, "sample variances")
    if degrees < 1:
        raise ValueError(f"sample variances with {degrees} degrees of freedom: at least 1 is needed, two pairs")
    if prior is None:
        return Moderated(sample, np.full(len(sample), float(degrees)))
    same_length(sample, prior.variance, "sample variances and the prior")
    certain = np.isinf(prior.degrees)
    weight = np.where(certain, 0.0, prior.degrees)
    pooled = (weight * prior.variance + degrees * sample) / (weight + degrees)
    return Moderated(np.where(certain, prior.variance, pooled), prior.degrees + degrees)


def fit_variance_prior(variances: ArrayLike, degrees: ArrayLike) -> tuple[float, float]:
    """(s0^2, d0) of a family of series from their sample variances, shape (m,), m >= 3, by moments of their logarithms.

    degrees: of each variance, shape (m,) or one number. Smyth 2004, section 6.2: with e = ln s^2 - digamma(d/2) +
    ln(d/2), trigamma(d0/2) = var(e) - mean trigamma(d/2), and ln s0^2 = mean(e) + digamma(d0/2) - ln(d0/2). If the
    logarithms spread no more than chance alone would make them, d0 is infinite: all series have one variance.
    A variance of 0 has no logarithm and is left out: that series does not vary, and says nothing of how the others do.
    """
    logs, chance = _logarithms(variances, degrees)
    weight = _weight(float(logs.var(ddof=1)), chance)
    half_prior = weight / 2
    shift = 0.0 if np.isinf(weight) else float(special.digamma(half_prior)) - np.log(half_prior)
    return float(np.exp(logs.mean() + shift)), weight


def cautious_weight(variances: ArrayLike, degrees: ArrayLike) -> float:
    """d0 of a family of series, as low as it may well be; arguments as of `fit_variance_prior`.

    The d0 that is fitted to few series or few pairs is a guess; where chance makes their variances look alike it is
    infinite, and intervals are too narrow: at 3 pairs any of 12 missed in 3 % of comparisons instead of 1 %
    (docs/statistics.md). So the spread of the logarithms is taken at its upper bound, of which one is SURE_OF_SPREAD:
    (m - 1) var(e) / the chi-squared quantile of m - 1 degrees, as if they were normal.
    """
    logs, chance = _logarithms(variances, degrees)
    freedom = len(logs) - 1
    most = float(logs.var(ddof=1)) * freedom / float(special.chdtri(freedom, SURE_OF_SPREAD))
    return _weight(most, chance)


def _logarithms(variances: ArrayLike, degrees: ArrayLike) -> tuple[FloatArray, float]:
    """e = ln s^2 - digamma(d/2) + ln(d/2) of the series that vary, and how much chance alone makes them spread."""
    sample = finite_vector(variances, "sample variances", at_least=FEWEST_SERIES_TO_REFIT)
    each = np.broadcast_to(np.asarray(degrees, dtype=np.float64), sample.shape)
    if (sample < 0).any() or not (each >= 1).all():
        raise ValueError("sample variances: none may be below 0, and each needs at least 1 degree of freedom")
    if np.count_nonzero(sample) < FEWEST_SERIES_TO_REFIT:
        raise ValueError(
            f"sample variances: {np.count_nonzero(sample)} above 0, at least {FEWEST_SERIES_TO_REFIT} are needed; "
            "channels that never vary are compared exactly"
        )
    half = each[sample > 0] / 2
    return np.log(sample[sample > 0]) - special.digamma(half) + np.log(half), float(special.polygamma(1, half).mean())


def _weight(spread: float, chance: float) -> float:
    """d0, of the variance of the logarithms less what chance makes of it, which is trigamma(d0/2)."""
    return 2 * inverse_trigamma(spread - chance) if spread > chance else np.inf


def refit_prior(variances: ArrayLike, degrees: float, prior: VariancePrior) -> VariancePrior:
    """The prior as tonight's machine bears it out: its proportions between the series, scale and weight fitted anew.

    variances: tonight's, shape (m,), m >= 3, of n - 1 = `degrees`. A quiet week's A/A table on a noisy night would
    make every series look too steady, and one whose own pairs show it is outvoted by d0. So s^2 / s0^2 over all
    series gives a factor of the scale, as in `fit_variance_prior`, and a weight that is surely deserved
    (`cautious_weight`) and never exceeds the one that was given. A series with 0 prior degrees has no proportion and
    takes no part; three others at least must vary.
    """
    sample = finite_vector(variances, "sample variances", at_least=FEWEST_SERIES_TO_REFIT)
    same_length(sample, prior.variance, "sample variances and the prior")
    known = prior.known
    ratios = sample[known] / prior.variance[known]
    scale, _ = fit_variance_prior(ratios, degrees)
    weight = cautious_weight(ratios, degrees)
    return VariancePrior(np.where(known, scale * prior.variance, prior.variance), np.minimum(weight, prior.degrees))


def inverse_trigamma(value: float) -> float:
    """y with trigamma(y) = value > 0, by Newton's method on 1 / trigamma, which is convex (Smyth 2004, appendix)."""
    if not value > 0:
        raise ValueError(f"inverse trigamma of {value}: a number above 0 is needed")
    if value > 1e7:  # trigamma(y) is 1 / y^2 near 0, and 1 / y far out
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    y = 0.5 + 1 / value
    for _ in range(_NEWTON_STEPS):
        trigamma = float(special.polygamma(1, y))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, y))
        y += step
        if -step / y < 1e-12:
            break
    return float(y)
