"""All 2^n signs of a mean."""

import numpy as np
import pytest
from scipy import stats

from torchbenchmark.statistics.sign_flip import sign_flip_test

# Darwin's maize, heights of crossed less self-fertilized plants in eighths of an inch: Fisher 1935, section 21.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_darwins_maize_gives_fishers_count_of_the_32768_arrangements():
    """Fisher finds 863 whose total is at least as large: 2.634 % one-sided, 5.267 % two-sided."""
    one_sided, two_sided = sign_flip_test(DARWIN), sign_flip_test(DARWIN, alternative="two-sided")
    assert (one_sided.p_value, one_sided.flips, one_sided.exact) == (863 / 2**15, 2**15, True)
    assert two_sided.p_value == 2 * 863 / 2**15


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_p_values_are_those_of_scipys_permutation_test(alternative):
    values = np.random.default_rng(1).normal(0.4, 1, 10)
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", alternative=alternative, n_resamples=np.inf
    )
    assert sign_flip_test(values, alternative=alternative).p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("n", [1, 5, 7, 20])
def test_pairs_that_all_agree_give_the_smallest_p_value_there_is(n):
    test = sign_flip_test(np.linspace(0.01, 0.02, n))
    assert (test.p_value, test.exact) == (2.0**-n, True)


def test_sums_that_are_equal_but_for_rounding_count_as_equal():
    assert sign_flip_test([0.1, 0.2, 0.3, -0.1, -0.2, -0.3]).p_value == sign_flip_test([1, 2, 3, -1, -2, -3]).p_value
    assert sign_flip_test([0.1] * 9 + [-0.1]).p_value == (10 + 1) / 2**10


def test_zeros_take_no_side():
    assert sign_flip_test([0.0, 0.0, 0.0]).p_value == 1.0
    assert sign_flip_test([1.0, 2.0, 3.0, 0.0]).p_value == sign_flip_test([1.0, 2.0, 3.0]).p_value


def test_a_margin_is_taken_from_the_differences_and_not_from_their_mean_as_it_is_told():
    values = np.random.default_rng(2).normal(1, 1, 9)
    test = sign_flip_test(values, 0.5)
    assert test.p_value == sign_flip_test(values - 0.5).p_value
    assert test.mean == pytest.approx(values.mean())


def test_beyond_twenty_pairs_random_flips_come_near_the_normal_limit_and_never_to_zero():
    values = np.random.default_rng(3).normal(0.25, 1, 60)
    test = sign_flip_test(values, flips=20_000, seed=5)
    limit = stats.norm.sf(values.sum() / np.sqrt((values**2).sum()))
    assert not test.exact
    assert test.p_value == pytest.approx(limit, abs=4 * np.sqrt(limit / 20_000) + 0.002)
    assert sign_flip_test(np.ones(21), flips=999).p_value == 1 / 1000


def test_the_same_seed_gives_the_same_p_value_and_another_seed_another():
    values = np.random.default_rng(4).normal(0.2, 1, 30)
    once, again, other = (sign_flip_test(values, flips=5000, seed=seed).p_value for seed in (1, 1, 2))
    assert once == again != other


def test_identical_builds_are_called_slower_as_rarely_as_was_asked():
    samples = np.random.default_rng(5).standard_t(3, (3000, 10))
    false = sum(sign_flip_test(sample).p_value <= 0.05 for sample in samples)
    assert abs(false / 3000 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 3000)


def test_arguments_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        sign_flip_test([])
    with pytest.raises(ValueError, match="choose greater"):
        sign_flip_test([1.0], alternative="slower")
    with pytest.raises(ValueError, match="flips 0"):
        sign_flip_test(np.ones(21), flips=0)
