"""Intervals that hold for all series of a comparison at once: a comment with forty tests may be wrong in 1 of 100.

`moderated_intervals` from few pairs and what A/A knows; `max_t_intervals` from twelve pairs on, without assuming
normal noise. Rows are pairs (zygote pairs: the unit of evidence), columns are the series that are judged statistically;
counts are compared exactly and belong to no family.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from torchbenchmark.statistics.interval import Interval
from torchbenchmark.statistics.moderated_variance import (
    FEWEST_SERIES_TO_REFIT,
    VariancePrior,
    moderate,
    refit_prior,
)
from torchbenchmark.statistics.samples import FloatArray, finite_table, probability, same_length

FEWEST_PAIRS_FOR_BOOTSTRAP = 12
FEWEST_RESAMPLES_BEYOND = 10  # the critical value, a quantile, needs so many on its far side
MOST_RESAMPLES = 500_000  # half a minute for forty series
_RESAMPLES_AT_ONCE = 2**20


def sidak_level(level: float, family: int) -> float:
    """The level of each of `family` intervals that all hold together with `level`: level^(1 / family).

    Exact for independent series, conservative for correlated normal ones. Source: Sidak 1967.
    """
    if family < 1:
        raise ValueError(f"family of {family}: at least 1 series is needed")
    return float(probability(level, "level") ** (1 / family))


def moderated_intervals(
    log_ratios: ArrayLike,
    prior: VariancePrior | None = None,
    level: float = 0.99,
    *,
    family: int | None = None,
    believe_prior: bool = False,
) -> tuple[Interval, ...]:
    """One interval a series: mean +- t(d0 + n - 1) s_post / sqrt(n), at the Sidak level of the family.

    log_ratios: shape (n, m), n >= 2 pairs, new over old build. `family`: how many are judged together, m unless more
    are (the same comment may judge other channels elsewhere). Without a prior a plain Student t each. The prior is
    first weighed against tonight (`refit_prior`, `degrees_after_refit`); believe_prior takes it as it stands. Fewer
    than three series that vary cannot bear a prior out, and are judged by their own pairs. Assumes pairs that are
    independent and normal; the mean of a few heavy-tailed pairs is covered more often than said, of skewed ones less.
    """
    table = finite_table(log_ratios, "log ratios", at_least=2)
    pairs, series = table.shape
    family = series if family is None else family
    if family < series:
        raise ValueError(f"family of {family}: there are {series} series already; it cannot be smaller")
    each = sidak_level(level, family)
    sample = sample_variances(table)
    if prior is not None:
        same_length(sample, prior.variance, "series of the log ratios and of the prior")
    if prior is not None and not believe_prior:
        told = (sample > 0) & prior.known
        prior = refit_prior(sample, pairs - 1, prior) if np.count_nonzero(told) >= FEWEST_SERIES_TO_REFIT else None
    moderated = moderate(sample, pairs - 1, prior)
    degrees = moderated.degrees
    if prior is not None and not believe_prior:
        degrees = degrees_after_refit(moderated.degrees, pairs - 1, effective_series(table[:, told]))
    _refuse_constant(moderated.variance)
    certain = np.isinf(degrees)
    critical = special.stdtrit(np.where(certain, 1.0, degrees), (1 + each) / 2)
    critical = np.where(certain, special.ndtri((1 + each) / 2), critical)
    return _around(table.mean(axis=0), critical * np.sqrt(moderated.variance / pairs), each)


def can_bootstrap(log_ratios: ArrayLike, level: float) -> bool:
    """Whether `max_t_intervals` gives intervals that mean something for these pairs, shape (n, m), n >= 2.

    Not below twelve pairs, and not at a level whose critical value takes more than MOST_RESAMPLES. Nor where most pairs
    of a series are the same: a resample in which all are has no spread and so an infinite t, and once these are more
    than a tenth of 1 - level, they are the critical value of every series.
    """
    table = finite_table(log_ratios, "log ratios", at_least=2)
    pairs = len(table)
    if pairs < FEWEST_PAIRS_FOR_BOOTSTRAP or (1 - level) * MOST_RESAMPLES < 2 * FEWEST_RESAMPLES_BEYOND:
        return False
    constant = sum(float(((np.unique(column, return_counts=True)[1] / pairs) ** pairs).sum()) for column in table.T)
    return constant <= (1 - level) / 10


def max_t_intervals(
    log_ratios: ArrayLike, level: float = 0.99, *, resamples: int = 10_000, seed: int = 0
) -> tuple[Interval, ...]:
    """One interval a series: mean +- c s / sqrt(n), c the `level` quantile of the largest |t| over the series.

    log_ratios: shape (n, m), n >= 12. Pairs are resampled jointly over the series, so whatever correlation the series
    have is kept, and skewed pairs are no matter. The family is the m columns; `level` of each Interval is that of all
    together. Source: Westfall and Young 1993; Efron and Tibshirani 1993, chapter 12 (bootstrap-t). Assumes
    independent pairs from one distribution. With few pairs it covers more than it says and is wide; below twelve the
    resamples repeat each other. It takes no prior: a variance that is known from elsewhere does not vary in the
    resamples, and what came of it missed in up to 5 % instead of 1 % (docs/statistics.md).
    """
    table = finite_table(log_ratios, "log ratios", at_least=2)
    pairs = len(table)
    if pairs < FEWEST_PAIRS_FOR_BOOTSTRAP:
        raise ValueError(
            f"max-t bootstrap of {pairs} pairs: at least {FEWEST_PAIRS_FOR_BOOTSTRAP} are needed; "
            "use moderated_intervals"
        )
    fewest = int(np.ceil(FEWEST_RESAMPLES_BEYOND / (1 - probability(level, "level")) - 1e-6))
    if resamples < fewest:
        raise ValueError(f"{resamples} resamples: at least {fewest} are needed for level {level:g}")
    variance = sample_variances(table)
    _refuse_constant(variance)
    critical = float(np.quantile(_largest_t(table, resamples, seed), level, method="higher"))
    return _around(table.mean(axis=0), critical * np.sqrt(variance / pairs), level)


def effective_series(table: FloatArray) -> float:
    """How many independent series would tell as much of the common scale as the m of a table of shape (n, m).

    m / (1 + (m - 1) r^2). Of normal series the sample variances correlate by the square of their correlation r; r^2
    is the mean over the pairs of series, less the 1 / (n - 1) that chance alone gives it. All columns must vary.
    """
    pairs, series = table.shape
    if series == 1:
        return 1.0
    squares = np.corrcoef(table.T) ** 2
    mean = (squares.sum() - series) / (series * (series - 1))
    by_chance = 1 / (pairs - 1)
    mean = max(0.0, (mean - by_chance) / (1 - by_chance)) if pairs > 2 else 1.0
    return float(series / (1 + (series - 1) * mean))


def degrees_after_refit(degrees: FloatArray, own: int, series: float) -> FloatArray:
    """Degrees of freedom of s_post^2, shape (m,), whose prior's scale comes from the same pairs (Satterthwaite 1946).

    degrees: d0 + d, shape (m,); own: d; series: how many told the scale. The scale, estimated with series * d
    degrees, has the share w = d0 / (d0 + d) of s_post^2, so 2 / degrees of relative variance grows by 2 w^2 / (series
    d).
    """
    share = 1 - own / degrees
    return 1 / (1 / degrees + share**2 / (series * own))


def sample_variances(table: FloatArray) -> FloatArray:
    """Of each column of a table of shape (n, m), n >= 2; exactly 0 where all rows are equal, whatever the rounding."""
    return np.where((table == table[0]).all(axis=0), 0.0, table.var(axis=0, ddof=1))


def _largest_t(table: FloatArray, resamples: int, seed: int) -> FloatArray:
    """The largest |t| over the series in each of the resamples, shape (resamples,)."""
    pairs, series = table.shape
    centred = table - table.mean(axis=0)
    squares = centred**2
    generator = np.random.default_rng(seed)
    largest: list[FloatArray] = []
    left = resamples
    while left:
        batch = min(left, max(1, _RESAMPLES_AT_ONCE // series))
        counts = generator.multinomial(pairs, np.full(pairs, 1 / pairs), size=batch).astype(np.float64)
        means = counts @ centred / pairs
        variances = np.maximum(counts @ squares / pairs - means**2, 0.0) * pairs / (pairs - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(means) / np.sqrt(variances / pairs)
        largest.append(np.where(np.isnan(t), np.inf, t).max(axis=1))
        left -= batch
    return np.concatenate(largest)


def _refuse_constant(variances: FloatArray) -> None:
    if (variances == 0).any():
        raise ValueError(
            f"log ratios: series {int(np.argmin(variances))} is the same in all pairs; "
            "compare it exactly, as counts are"
        )


def _around(means: FloatArray, half_widths: FloatArray, level: float) -> tuple[Interval, ...]:
    return tuple(
        Interval(float(mean), float(mean - half), float(mean + half), level)
        for mean, half in zip(means, half_widths, strict=True)
    )
