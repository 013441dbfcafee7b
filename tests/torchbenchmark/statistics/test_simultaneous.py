"""Intervals of all series of a comparison at once."""

import numpy as np
import pytest
from scipy import stats

from torchbenchmark.statistics.moderated_variance import VariancePrior
from torchbenchmark.statistics.simultaneous import (
    can_bootstrap,
    degrees_after_refit,
    effective_series,
    max_t_intervals,
    moderated_intervals,
    sample_variances,
    sidak_level,
)

USUAL = 1e-4  # variance of a pair that A/A knows
PRIOR_DEGREES = 20.0


def comparisons(repeats, pairs, series, correlation, seed):
    """Log ratios without any difference, whose true variances are as the prior says."""
    rng = np.random.default_rng(seed)
    common, own = rng.standard_normal((repeats, pairs, 1)), rng.standard_normal((repeats, pairs, series))
    spread = np.sqrt(USUAL * PRIOR_DEGREES / rng.chisquare(PRIOR_DEGREES, (repeats, 1, series)))
    return spread * (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own)


def prior_of(series, factor=1.0):
    return VariancePrior(np.full(series, USUAL * factor), np.full(series, PRIOR_DEGREES))


def share_of_false_families(intervals_of, samples):
    return np.mean([not all(interval.contains(0.0) for interval in intervals_of(sample)) for sample in samples])


def upper(share, repeats):
    return share + 3 * np.sqrt(share * (1 - share) / repeats)


def test_a_moderated_interval_worked_by_hand():
    """n = 6 values of mean 1 and variance 5, prior 2 with 4 degrees: s^2 = 11/3, t(.975, 9) = 2.262, +- 1.768."""
    sample = 1 + np.array([-3.0, -2.0, -0.5, 0.5, 2.0, 3.0]) * np.sqrt(25 / 26.5)
    assert sample.var(ddof=1) == pytest.approx(5)
    (interval,) = moderated_intervals(sample[:, None], VariancePrior([2.0], 4.0), 0.95, believe_prior=True)
    assert interval.estimate == pytest.approx(1)
    assert interval.half_width == pytest.approx(2.262 * np.sqrt(11 / 3 / 6), abs=0.0005)
    assert interval.level == 0.95


def test_without_a_prior_each_interval_is_students_at_the_level_of_sidak():
    table = np.random.default_rng(1).normal(0.01, 0.02, (7, 5))
    for column, interval in zip(table.T, moderated_intervals(table, level=0.99), strict=True):
        expected = stats.ttest_1samp(column, 0).confidence_interval(0.99 ** (1 / 5))
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_a_variance_that_is_certain_gives_the_normal_interval():
    table = np.random.default_rng(2).normal(0, 1, (4, 1))
    (interval,) = moderated_intervals(table, VariancePrior([9.0], np.inf), 0.95, believe_prior=True)
    assert interval.half_width == pytest.approx(1.959964 * 3 / 2, rel=1e-6)


def test_sidaks_level_makes_independent_intervals_hold_together_and_a_larger_family_wider_ones():
    assert sidak_level(0.99, 1) == pytest.approx(0.99)
    assert sidak_level(0.99, 40) ** 40 == pytest.approx(0.99)
    table = np.random.default_rng(3).normal(0, 1, (6, 2))
    narrow, wide = (moderated_intervals(table, family=family)[0].half_width for family in (2, 80))
    assert wide > narrow


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_forty_series_of_six_pairs_with_a_prior_hold_together_as_often_as_was_asked(correlation):
    samples = comparisons(400, 6, 40, correlation, 4)
    share = share_of_false_families(lambda sample: moderated_intervals(sample, prior_of(40), 0.95), samples)
    assert share <= upper(0.05, 400)


def test_a_prior_halves_the_width_that_six_pairs_alone_would_have():
    sample = comparisons(1, 6, 40, 0.0, 5)[0]
    with_prior, alone = (
        np.median([interval.half_width for interval in moderated_intervals(sample, prior)])
        for prior in (prior_of(40), None)
    )
    assert with_prior < 0.6 * alone


def test_a_prior_of_a_quiet_week_makes_no_false_alarms_on_a_night_that_is_twice_as_noisy():
    samples = comparisons(400, 6, 40, 0.0, 6)
    quiet = prior_of(40, factor=1 / 4)
    weighed = share_of_false_families(lambda sample: moderated_intervals(sample, quiet, 0.95), samples)
    believed = share_of_false_families(
        lambda sample: moderated_intervals(sample, quiet, 0.95, believe_prior=True), samples
    )
    assert weighed <= upper(0.05, 400)
    assert believed > 0.3  # why it is weighed


def test_a_prior_that_does_not_know_how_the_variances_differ_makes_no_false_alarms_of_three_pairs():
    rng = np.random.default_rng(8)
    sds = 0.01 * np.exp(rng.normal(0, 0.5, (1000, 1, 12)))
    samples = sds * rng.standard_normal((1000, 3, 12))
    sure = VariancePrior(np.full(12, USUAL), np.full(12, 1000.0))
    assert share_of_false_families(lambda sample: moderated_intervals(sample, sure, 0.95), samples) <= upper(0.05, 1000)


def test_one_or_two_series_cannot_bear_a_prior_out_and_are_judged_by_their_own_pairs():
    sample = comparisons(1, 6, 2, 0.0, 7)[0]
    assert moderated_intervals(sample, prior_of(2)) == moderated_intervals(sample)


def test_a_series_that_aa_has_never_seen_is_judged_by_its_own_pairs_beside_others_that_it_has():
    sample = comparisons(1, 6, 5, 0.0, 13)[0]
    prior = VariancePrior(np.full(5, USUAL), [0.0, 20.0, 20.0, 20.0, 20.0])
    assert moderated_intervals(sample, prior)[0].half_width == pytest.approx(moderated_intervals(sample)[0].half_width)
    assert moderated_intervals(sample, prior)[1] != moderated_intervals(sample)[1]


def test_series_that_move_as_one_tell_the_scale_once_and_independent_ones_once_each():
    one = comparisons(1, 40, 1, 0.0, 12)[0]
    assert effective_series(np.repeat(one, 30, axis=1)) == pytest.approx(1)
    assert effective_series(comparisons(1, 40, 30, 0.0, 12)[0]) > 15
    assert effective_series(comparisons(1, 40, 30, 0.5, 12)[0]) == pytest.approx(30 / (1 + 29 / 4), rel=0.4)
    assert effective_series(one) == 1


def test_degrees_after_a_refit_worked_by_hand():
    """d0 = 20, d = 5, scale from 4 series: 1 / (1 / 25 + .8^2 / 20) = 13.9; no prior: d; a certain one: that of the
    scale."""
    assert degrees_after_refit(np.array([25.0, 5.0, np.inf]), 5, 4.0) == pytest.approx([1 / 0.072, 5, 20])


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_forty_series_of_twelve_pairs_resampled_hold_together_at_least_as_often_as_was_asked(correlation):
    samples = comparisons(150, 12, 40, correlation, 8)
    share = share_of_false_families(lambda sample: max_t_intervals(sample, 0.9, resamples=400), samples)
    assert share <= upper(0.1, 150)


def test_resampled_intervals_of_series_that_move_as_one_are_those_of_one_series():
    one = comparisons(1, 24, 1, 0.0, 9)[0]
    (alone,) = max_t_intervals(one, 0.95)
    copies = max_t_intervals(np.repeat(one, 30, axis=1), 0.95)
    assert {round(interval.half_width / alone.half_width, 9) for interval in copies} == {1.0}
    assert alone.half_width == pytest.approx(
        stats.t.ppf(0.975, 23) * np.sqrt(one.var(ddof=1) / 24), rel=0.15
    )  # and near to Student's
    assert copies[0].half_width < 0.8 * moderated_intervals(np.repeat(one, 30, axis=1), level=0.95)[0].half_width


def test_the_same_seed_gives_the_same_intervals_and_another_seed_others():
    sample = comparisons(1, 12, 5, 0.3, 10)[0]
    once, again, other = (max_t_intervals(sample, 0.95, resamples=500, seed=seed) for seed in (1, 1, 2))
    assert once == again != other


def test_a_series_that_never_varies_is_refused_unless_a_prior_knows_its_variance():
    table = comparisons(1, 12, 4, 0.0, 11)[0]
    table[:, 1] = 0.1
    assert sample_variances(table)[1] == 0
    for call in (moderated_intervals, max_t_intervals):
        with pytest.raises(ValueError, match="series 1 is the same in all pairs; compare it exactly"):
            call(table)
    assert moderated_intervals(table, prior_of(4))[1].half_width > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: moderated_intervals(np.zeros((1, 3))), "1 rows, at least 2"),
        (lambda: moderated_intervals(np.zeros(6)), "pairs x series"),
        (lambda: moderated_intervals([[0.0, np.nan], [1.0, 2.0]]), r"value nan at \(0, 1\) is not finite"),
        (lambda: moderated_intervals([[1.0, 2.0], [3.0]]), "not an array of numbers"),
        (lambda: moderated_intervals(np.eye(3), level=99), "between 0 and 1"),
        (lambda: moderated_intervals(np.eye(3), family=2), "there are 3 series already"),
        (lambda: moderated_intervals(np.eye(4), prior_of(3)), "4 and 3 values"),
        (lambda: max_t_intervals(np.eye(11)), "at least 12 are needed; use moderated_intervals"),
        (lambda: max_t_intervals(np.eye(12), resamples=100), "at least 1000 are needed for level 0.99"),
    ],
)
def test_tables_that_cannot_be_judged_are_refused_with_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pairs_that_are_mostly_the_same_cannot_be_bootstrapped_nor_can_few_or_a_level_near_one():
    table = np.random.default_rng(1).normal(size=(12, 3))
    assert can_bootstrap(table, 0.99)
    assert not can_bootstrap(table[:11], 0.99)
    assert not can_bootstrap(table, 0.999999)
    table[:9, 1] = 0.0
    assert not can_bootstrap(table, 0.99), "a resample of these nine has an infinite t in one of thirty"
