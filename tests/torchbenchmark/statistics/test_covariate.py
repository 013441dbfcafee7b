"""Pairs adjusted by what their hosts did."""

import numpy as np
import pytest
from scipy import stats

from torchbenchmark.statistics.covariate import adjusted_log_ratios, covariate_interval, fitted_slope


def hosts(seed, pairs, slope=0.8, effect=0.0, noise=0.01):
    rng = np.random.default_rng(seed)
    probes = rng.normal(0, 0.1, pairs)
    return effect + slope * probes + noise * rng.standard_normal(pairs), probes


def test_the_effect_is_the_intercept_of_scipys_regression_with_its_standard_error():
    ratios, probes = hosts(1, 12, effect=0.03)
    expected = stats.linregress(probes, ratios)
    found = covariate_interval(ratios, probes)
    half = stats.t.ppf(0.975, 10) * expected.intercept_stderr
    assert found.interval.estimate == pytest.approx(expected.intercept)
    assert found.interval.half_width == pytest.approx(half)
    assert (found.slope, found.slope_error) == pytest.approx((expected.slope, expected.stderr))
    assert (found.slope_source, found.degrees) == ("fitted", 10)


def test_a_host_that_is_slower_in_most_pairs_is_not_taken_for_the_build():
    rng = np.random.default_rng(2)
    probes = rng.normal(0.2, 0.1, 12)
    ratios = 0.8 * probes + 0.005 * rng.standard_normal(12)
    assert covariate_interval(ratios, probes).interval.contains(0.0)
    assert not covariate_interval(ratios, np.zeros(12)).interval.contains(0.0)


def test_intervals_cover_as_often_as_they_say_and_are_a_fraction_of_the_width():
    found, plain = [], []
    for seed in range(600):
        ratios, probes = hosts(seed, 8)
        found.append(covariate_interval(ratios, probes).interval)
        plain.append(covariate_interval(ratios, np.zeros(8)).interval)
    covered = np.mean([interval.contains(0.0) for interval in found])
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 600)
    widths = [np.median([interval.half_width for interval in intervals]) for intervals in (found, plain)]
    assert widths[0] < widths[1] / 4


def test_few_pairs_are_adjusted_by_the_prior_slope():
    ratios, probes = hosts(3, 5, slope=1.2, effect=0.05)
    found = covariate_interval(ratios, probes)
    adjusted = ratios - 1.2 * probes
    expected = stats.ttest_1samp(adjusted, 0).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))
    assert (found.slope, found.slope_error, found.slope_source, found.degrees) == (1.2, None, "prior", 4)


def test_equal_hosts_leave_nothing_to_adjust():
    ratios, _ = hosts(4, 9)
    found = covariate_interval(ratios, np.zeros(9))
    assert (found.slope, found.slope_source, found.degrees) == (0.0, "none", 8)
    assert found.interval.estimate == pytest.approx(ratios.mean())


def test_probes_that_are_the_same_in_all_pairs_but_not_equal_between_sides_leave_it_to_the_prior_slope():
    ratios, _ = hosts(5, 9)
    found = covariate_interval(ratios, np.full(9, 0.1), prior_slope=0.8)
    assert (found.slope, found.slope_source) == (0.8, "prior")
    assert found.interval.estimate == pytest.approx(ratios.mean() - 0.08)


def test_the_slope_for_adjusting_is_kept_between_nothing_and_the_steepest_that_was_seen():
    for slope, expected in ((0.8, 0.8), (-0.5, 0.0), (1.8, 1.8), (3.0, 2.0)):
        ratios, probes = hosts(6, 40, slope=slope)
        assert fitted_slope(ratios, probes) == pytest.approx(expected, abs=0.05)
    assert fitted_slope(*hosts(6, 5, slope=0.3)) == 1.2
    assert fitted_slope(hosts(6, 12)[0], np.full(12, 0.1)) == 1.2


def test_adjusting_takes_out_what_the_slope_says_of_the_probe():
    assert adjusted_log_ratios([0.2, 0.1], [0.1, -0.1], 0.5) == pytest.approx([0.15, 0.15])
    assert adjusted_log_ratios([0.2], [0.1]) == pytest.approx([0.08])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: covariate_interval([0.1], [0.1]), "at least 2"),
        (lambda: covariate_interval([0.1, 0.2], [0.1]), "at least 2"),
        (lambda: covariate_interval([0.1, 0.2, 0.3], [0.1, 0.2]), "3 and 2 values"),
        (lambda: covariate_interval([0.1, np.inf], [0.1, 0.2]), "not finite"),
        (lambda: covariate_interval([0.1, 0.2], [0.1, 0.2], prior_slope=np.nan), "prior slope"),
        (lambda: adjusted_log_ratios([0.1], [0.1], np.nan), "slope nan"),
    ],
)
def test_pairs_without_their_probe_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
