"""Wilcoxon's signed ranks, against the printed tables, scipy and enumeration."""

import itertools

import numpy as np
import pytest
from scipy import stats

from torchbenchmark.statistics.signed_rank import (
    fewest_pairs,
    signed_rank_distribution,
    signed_rank_interval,
    signed_rank_test,
    walsh_order_statistic,
)

# The largest W with P(W+ <= W) <= .025, as printed in every table of the test (such as Wilcoxon and Wilcox 1964).
CRITICAL_025 = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29, 17: 34, 18: 40, 19: 46}
CRITICAL_025 |= {20: 52, 21: 58, 22: 65, 23: 73, 24: 81, 25: 89}
CRITICAL_005 = {8: 0, 9: 1, 10: 3, 11: 5, 12: 7, 13: 9, 14: 12, 15: 15, 16: 19, 17: 23, 18: 27, 19: 32, 20: 37, 25: 68}
DEPRESSION = np.array([-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010])  # Hollander and Wolfe


@pytest.mark.parametrize(("level", "critical"), [(0.95, CRITICAL_025), (0.99, CRITICAL_005)])
def test_the_order_statistics_are_those_of_the_printed_critical_values(level, critical):
    assert {n: walsh_order_statistic(n, level)[0] - 1 for n in critical} == critical


def test_twelve_pairs_give_the_14th_and_the_65th_walsh_average_at_95_8_percent():
    k, attained = walsh_order_statistic(12)
    assert (k, 12 * 13 // 2 + 1 - k) == (14, 65)
    assert attained == 1 - 2 * 87 / 2**12


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_distribution_is_that_of_all_signs_counted(n):
    sums = [sum(itertools.compress(range(1, n + 1), signs)) for signs in itertools.product((0, 1), repeat=n)]
    counted = np.bincount(sums, minlength=n * (n + 1) // 2 + 1) / 2**n
    assert signed_rank_distribution(n) == pytest.approx(counted, abs=1e-15)


def test_the_distribution_of_many_pairs_sums_to_one_and_has_the_known_moments():
    n = 200
    distribution = signed_rank_distribution(n)
    values = np.arange(len(distribution))
    mean = distribution @ values
    assert distribution.sum() == pytest.approx(1, abs=1e-12)
    assert mean == pytest.approx(n * (n + 1) / 4)
    assert distribution @ (values - mean) ** 2 == pytest.approx(n * (n + 1) * (2 * n + 1) / 24)


def test_the_depression_scores_give_the_published_p_value_and_interval():
    """Hollander and Wolfe, examples 3.1 and 3.4: W+ = 5, P = .020; the 96.1 % interval is (-.786, -.010)."""
    test = signed_rank_test(DEPRESSION, alternative="less")
    assert (test.statistic, round(test.p_value, 3)) == (5, 0.020)
    interval = signed_rank_interval(DEPRESSION, 0.96)
    assert (round(interval.low, 3), round(interval.high, 3)) == (-0.786, -0.010)
    assert interval.level == pytest.approx(0.961, abs=0.0005)


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("n", [1, 2, 6, 12, 24])
def test_without_ties_p_values_are_the_exact_ones_of_scipy(n, alternative):
    values = np.random.default_rng(n).normal(0.3, 1, n)
    expected = stats.wilcoxon(values, alternative=alternative, method="exact")
    assert signed_rank_test(values, alternative=alternative).p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("zeros", ["pratt", "wilcoxon"])
@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_with_ties_and_zeros_p_values_are_those_of_all_permutations(zeros, alternative):
    values = np.array([0, 1, 1, -1, 2, 3, -3, 2], dtype=float)
    expected = stats.wilcoxon(
        values,
        zero_method={"pratt": "pratt", "wilcoxon": "wilcox"}[zeros],
        alternative=alternative,
        method=stats.PermutationMethod(n_resamples=2**9),
    )
    assert signed_rank_test(values, alternative=alternative, zeros=zeros).p_value == pytest.approx(expected.pvalue)


def test_a_margin_is_a_shift_of_the_differences():
    values = np.random.default_rng(5).normal(1, 1, 11)
    assert signed_rank_test(values, 0.5) == signed_rank_test(values - 0.5)


def test_differences_that_are_all_zero_say_nothing():
    test = signed_rank_test([0.0, 0.0, 0.0])
    assert (test.p_value, test.pairs) == (1.0, 0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_interval_is_what_the_two_sided_test_does_not_reject(seed, level):
    values = np.random.default_rng(seed).standard_t(3, 9)
    interval = signed_rank_interval(values, level)
    hair = 1e-9
    for inside in (interval.low + hair, interval.estimate, interval.high - hair):
        assert signed_rank_test(values, inside, "two-sided").p_value > 1 - interval.level + 1e-12
    for outside in (interval.low - hair, interval.high + hair):
        assert signed_rank_test(values, outside, "two-sided").p_value <= 1 - interval.level + 1e-12


def test_intervals_of_twelve_pairs_cover_as_often_as_they_say():
    samples = np.random.default_rng(6).standard_t(3, (800, 12))
    covered = sum(signed_rank_interval(sample).contains(0.0) for sample in samples)
    assert abs(covered / 800 - 0.95752) < 4 * np.sqrt(0.9575 * 0.0425 / 800)


def test_intervals_of_tied_pairs_cover_at_least_as_often_as_they_say():
    samples = np.random.default_rng(7).integers(-2, 3, (800, 12))
    covered = sum(signed_rank_interval(sample).contains(0.0) for sample in samples)
    assert covered / 800 > 0.9575


@pytest.mark.parametrize(("level", "fewest"), [(0.75, 3), (0.9, 5), (0.95, 6), (0.96875, 6), (0.99, 8)])
def test_too_few_pairs_for_the_level_are_told_how_many_it_takes(level, fewest):
    assert fewest_pairs(level) == fewest
    signed_rank_interval(np.arange(fewest), level)
    with pytest.raises(ValueError, match=f"at least {fewest} are needed"):
        signed_rank_interval(np.arange(fewest - 1), level)


def test_arguments_that_mean_nothing_are_refused_with_what_does():
    with pytest.raises(ValueError, match="between 0 and 1"):
        signed_rank_interval(np.arange(12), 95)
    with pytest.raises(ValueError, match="choose greater, less or two-sided"):
        signed_rank_test([1.0], alternative="slower")
    with pytest.raises(ValueError, match="choose pratt or wilcoxon"):
        signed_rank_test([1.0], zeros="drop")
    with pytest.raises(ValueError, match="not finite"):
        signed_rank_test([1.0, np.nan])
    with pytest.raises(ValueError, match="margin"):
        signed_rank_test([1.0], margin=np.nan)
