"""Pairs adjusted by what their hosts did: the log ratio of a test follows that of the host probe beside it.

D_k = ln(new / old) of a test, P_k = ln(new / old) of the probe, which is the same work in both builds. P = 0 means
equal hosts, so the effect of the build is D at P = 0: the intercept of the regression of D on P (analysis of
covariance, Fisher 1932; Cochran 1957). Assumes that the build does not move the probe, that D follows P along a line,
and that P is measured well against its own spread; error in P flattens the slope, which costs power and, as the order
within pairs is a coin and P has no sign of its own, no honesty.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from torchbenchmark.statistics.interval import Interval
from torchbenchmark.statistics.samples import FloatArray, finite_number, finite_vector, probability, same_length

PRIOR_SLOPE = 1.2  # launch-bound tests on a GPU host against a probe of tiny launches
MOST_SLOPE = 2.0  # the steepest that was seen of any test
FEWEST_PAIRS_TO_FIT = 6  # a slope and an intercept leave four degrees of freedom
# Probes that spread by less than this about their mean say nothing of a slope: it is the resolution of a probe of a
# millisecond.
SMALLEST_SPREAD = 1e-6

SlopeSource = Literal["fitted", "prior", "none"]


@dataclass(frozen=True)
class AdjustedEffect:
    interval: Interval  # of D where hosts are equal, in log units
    slope: float
    slope_error: float | None  # standard error; None where the slope was not fitted
    slope_source: SlopeSource  # "none": the probes say nothing, all being 0
    degrees: int


def fitted_slope(
    log_ratios: ArrayLike, probes: ArrayLike, prior_slope: float = PRIOR_SLOPE, steepest: float = MOST_SLOPE
) -> float:
    """The least-squares slope of D on P, both of shape (n,), kept between 0 and `steepest`.

    A host that slows the probe does not speed the test, and noise in few pairs must not adjust by more than was ever
    seen. Fewer than six pairs, or probes that do not vary: prior_slope.
    """
    differences, probe = _both(log_ratios, probes)
    if not _can_fit(probe):
        return finite_number(prior_slope, "prior slope")
    centred = probe - probe.mean()
    return float(np.clip(centred @ differences / (centred @ centred), 0.0, finite_number(steepest, "steepest slope")))


def adjusted_log_ratios(log_ratios: ArrayLike, probes: ArrayLike, slope: float = PRIOR_SLOPE) -> FloatArray:
    """D - slope P, shape (n,): the pairs as on equal hosts, for signed ranks, sign flips and the e-process.

    For those the slope must not come from these pairs: one that was fitted to them makes them dependent, and the
    e-process void. Symmetry about the effect is kept if D - slope P is symmetric, whatever the slope: a wrong one
    costs power only.
    """
    differences, probe = _both(log_ratios, probes)
    return differences - finite_number(slope, "slope") * probe


def covariate_interval(
    log_ratios: ArrayLike, probes: ArrayLike, level: float = 0.95, *, prior_slope: float = PRIOR_SLOPE
) -> AdjustedEffect:
    """The effect at equal hosts with its Student interval; D and P of shape (n,), n >= 2.

    Six pairs or more whose probes vary: intercept of least squares, variance s^2 (1/n + mean(P)^2 / Sxx), n - 2
    degrees of freedom; the slope is free, as a clipped one would leave its own error out. Fewer pairs: D -
    prior_slope P, n - 1 degrees. Probes that are all the same c: with c = 0 there is nothing to adjust; with c other
    than 0 one side had the faster host in every pair, nothing in these pairs can tell the host from the build, and
    the answer rests on prior_slope alone.
    """
    differences, probe = _both(log_ratios, probes, at_least=2)
    probability(level, "level")
    n = len(differences)
    if not _can_fit(probe):
        source: SlopeSource = "prior" if np.abs(probe).max() > SMALLEST_SPREAD else "none"
        slope = finite_number(prior_slope, "prior slope") if source == "prior" else 0.0
        adjusted = differences - slope * probe
        error = float(adjusted.std(ddof=1) / np.sqrt(n))
        return AdjustedEffect(_student(float(adjusted.mean()), error, n - 1, level), slope, None, source, n - 1)
    centre = probe.mean()
    centred = probe - centre
    spread = float(centred @ centred)
    slope = float(centred @ differences / spread)
    effect = float(differences.mean() - slope * centre)
    residuals = differences - effect - slope * probe
    variance = float(residuals @ residuals) / (n - 2)
    error = float(np.sqrt(variance * (1 / n + centre**2 / spread)))
    return AdjustedEffect(
        _student(effect, error, n - 2, level), slope, float(np.sqrt(variance / spread)), "fitted", n - 2
    )


def _both(log_ratios: ArrayLike, probes: ArrayLike, at_least: int = 1) -> tuple[FloatArray, FloatArray]:
    differences = finite_vector(log_ratios, "log ratios of the test", at_least=at_least)
    probe = finite_vector(probes, "log ratios of the probe", at_least=at_least)
    same_length(differences, probe, "log ratios of the test and of the probe")
    return differences, probe


def _can_fit(probe: FloatArray) -> bool:
    return len(probe) >= FEWEST_PAIRS_TO_FIT and float(probe.std()) > SMALLEST_SPREAD


def _student(estimate: float, error: float, degrees: int, level: float) -> Interval:
    half = float(special.stdtrit(degrees, (1 + level) / 2)) * error
    return Interval(estimate, estimate - half, estimate + half, level)
