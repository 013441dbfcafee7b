"""Variances of few pairs, shrunk towards what is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from torchbenchmark.statistics.moderated_variance import (
    VariancePrior,
    cautious_weight,
    fit_variance_prior,
    inverse_trigamma,
    moderate,
    refit_prior,
)


def drawn(rng, series, degrees, scale, prior_degrees):
    """Sample variances of series whose true variances are scaled inverse chi-squared."""
    true = scale * prior_degrees / rng.chisquare(prior_degrees, series)
    return true * rng.chisquare(degrees, series) / degrees


def test_the_posterior_variance_is_the_mean_weighted_by_degrees_of_freedom():
    """By hand: (4 * 2 + 5 * 5) / 9 = 11 / 3, and (10 * 1 + 5 * 0) / 15 = 2 / 3."""
    moderated = moderate([5.0, 0.0], 5, VariancePrior([2.0, 1.0], [4.0, 10.0]))
    assert moderated.variance == pytest.approx([11 / 3, 2 / 3])
    assert moderated.degrees == pytest.approx([9, 15])


def test_no_prior_or_one_that_knows_nothing_leaves_the_variance_and_a_certain_one_replaces_it():
    assert moderate([5.0], 5, None).variance == moderate([5.0], 5, VariancePrior([2.0], 0.0)).variance == [5.0]
    certain = moderate([5.0], 5, VariancePrior([2.0], np.inf))
    assert (certain.variance, certain.degrees) == ([2.0], [np.inf])


@given(st.floats(1e-9, 1e9))
def test_the_inverse_of_trigamma_is_its_inverse(value):
    assert special.polygamma(1, inverse_trigamma(value)) == pytest.approx(value, rel=1e-5)


def test_the_inverse_of_trigamma_gives_the_values_of_the_tables():
    assert inverse_trigamma(np.pi**2 / 6) == pytest.approx(1)
    assert inverse_trigamma(np.pi**2 / 2) == pytest.approx(0.5)


def test_the_fit_solves_smyths_two_moment_equations():
    variances, degrees = np.array([0.2, 1.5, 0.7, 9.0, 2.2, 0.4]), np.array([3, 5, 5, 4, 8, 5])
    scale, prior_degrees = fit_variance_prior(variances, degrees)
    logs = np.log(variances) - special.digamma(degrees / 2) + np.log(degrees / 2)
    expected_spread = special.polygamma(1, prior_degrees / 2) + special.polygamma(1, degrees / 2).mean()
    assert logs.var(ddof=1) == pytest.approx(expected_spread)
    expected_mean = np.log(scale) - special.digamma(prior_degrees / 2) + np.log(prior_degrees / 2)
    assert logs.mean() == pytest.approx(expected_mean)


def test_a_planted_prior_is_recovered():
    variances = drawn(np.random.default_rng(1), 20_000, 5, 3e-4, 12.0)
    scale, prior_degrees = fit_variance_prior(variances, 5)
    assert scale == pytest.approx(3e-4, rel=0.03)
    assert prior_degrees == pytest.approx(12, rel=0.1)


def test_variances_that_spread_no_more_than_chance_have_a_prior_that_is_certain():
    scale, prior_degrees = fit_variance_prior([1.0, 1.1, 0.9, 1.0], 5)
    assert prior_degrees == np.inf
    assert scale == pytest.approx(1.15, abs=0.2)


def test_one_series_that_never_varied_does_not_spoil_the_fit():
    variances = drawn(np.random.default_rng(2), 40, 5, 1.0, 20.0)
    assert fit_variance_prior(np.append(variances, 0.0), 5) == fit_variance_prior(variances, 5)


@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0])
def test_a_prior_of_a_quieter_or_noisier_week_is_brought_to_tonights_scale_with_its_proportions_kept(factor):
    rng = np.random.default_rng(3)
    usual = rng.lognormal(-9, 1, 200)
    tonight = factor * usual * drawn(rng, 200, 5, 1.0, 20.0)
    refitted = refit_prior(tonight, 5, VariancePrior(usual, 20.0))
    assert refitted.variance / usual == pytest.approx(np.full(200, factor), rel=0.2)
    assert (refitted.degrees <= 20).all()


def test_a_prior_whose_proportions_do_not_hold_tonight_loses_its_weight():
    rng = np.random.default_rng(4)
    tonight = drawn(rng, 200, 5, 1.0, 2.0)
    assert refit_prior(tonight, 5, VariancePrior(np.ones(200), 50.0)).degrees.max() < 4


def test_the_weight_is_that_of_variances_which_spread_by_as_much_as_these_may():
    """By hand: of 3 logarithms the upper bound is 2 var / 0.4463, the lower fifth of chi-squared with 2 degrees."""
    logs = np.array([-1.0, 0.0, 1.5])
    chance = float(special.polygamma(1, 2.5))
    assert cautious_weight(np.exp(logs), 5) == pytest.approx(
        2 * inverse_trigamma(2 * logs.var(ddof=1) / 0.4463 - chance), rel=1e-3
    )
    assert cautious_weight(np.exp(logs), 5) < fit_variance_prior(np.exp(logs), 5)[1]
    assert cautious_weight([1.0, 1.0, 1.0], 5) == np.inf


def test_a_prior_is_never_given_more_weight_than_it_came_with():
    refitted = refit_prior([1.0, 1.0, 1.0, 1.0], 5, VariancePrior(np.ones(4), [3.0, 8.0, 20.0, np.inf]))
    assert refitted.degrees.tolist() == [3.0, 8.0, 20.0, np.inf]


def test_a_series_that_aa_has_never_seen_takes_no_part_in_the_refit_and_keeps_its_own_variance():
    tonight = np.array([1.0, 3.0, 2.0, 2.5, 1e6])
    refitted = refit_prior(tonight, 5, VariancePrior([1.0, 1.0, 1.0, 1.0, 0.0], [20.0, 20.0, 20.0, 20.0, 0.0]))
    expected = refit_prior(tonight[:4], 5, VariancePrior(np.ones(4), 20.0))
    assert refitted.variance[:4] == pytest.approx(expected.variance)
    assert refitted.degrees.tolist() == [*expected.degrees, 0.0]
    assert moderate(tonight, 5, refitted).variance[4] == 1e6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: VariancePrior([1.0, 0.0], 4.0), "one is not above 0"),
        (lambda: VariancePrior([1.0], -1.0), "at least 0"),
        (lambda: VariancePrior([1.0], np.nan), "at least 0"),
        (lambda: VariancePrior([1.0, 2.0], [1.0]), "2 and 1 values"),
        (lambda: moderate([1.0], 0, None), "two pairs"),
        (lambda: moderate([1.0], 5, VariancePrior([1.0, 2.0], 4.0)), "1 and 2 values"),
        (lambda: fit_variance_prior([1.0, 2.0], 5), "at least 3"),
        (lambda: fit_variance_prior([0.0, 0.0, 2.0, 1.0], 5), "2 above 0, at least 3"),
        (lambda: fit_variance_prior([-1.0, 2.0, 3.0], 5), "below 0"),
        (lambda: refit_prior([1.0, 2.0, 3.0], 5, VariancePrior(np.ones(3), [4.0, 0.0, 4.0])), "2 of them, at least 3"),
        (lambda: inverse_trigamma(0.0), "above 0"),
    ],
)
def test_what_is_no_variance_is_refused_with_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
