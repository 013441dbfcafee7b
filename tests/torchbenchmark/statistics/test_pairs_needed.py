"""How many more pairs an inconclusive comparison needs."""

import numpy as np
import pytest
from scipy import stats

from torchbenchmark.statistics.pairs_needed import pairs_needed


def half_width(variance, pairs, level=0.95, prior_degrees=0.0):
    return stats.t.ppf((1 + level) / 2, prior_degrees + pairs - 1) * np.sqrt(variance / pairs)


@pytest.mark.parametrize("prior_degrees", [0.0, 20.0])
@pytest.mark.parametrize("aim", [0.002, 0.005, 0.01])
def test_so_many_more_are_enough_and_one_fewer_is_not(aim, prior_degrees):
    more = pairs_needed(1e-4, 6, aim, 0.99, prior_degrees=prior_degrees)
    assert more > 0
    assert half_width(1e-4, 6 + more, 0.99, prior_degrees) <= aim < half_width(1e-4, 5 + more, 0.99, prior_degrees)


def test_the_textbook_sample_size_for_a_standard_deviation_that_is_known():
    """(1.96 / .5)^2 = 15.4: 16 for a half width of half a standard deviation."""
    assert pairs_needed(1.0, 2, 0.5, prior_degrees=np.inf) == 14


def test_none_are_needed_where_the_interval_is_narrow_enough():
    assert pairs_needed(1e-4, 12, half_width(1e-4, 12)) == 0
    assert pairs_needed(0.0, 2, 0.001) == 0


def test_where_pairs_will_not_do_it_there_is_no_number():
    assert pairs_needed(1.0, 6, 1e-3) is None


def test_assurance_asks_for_more_and_for_less_the_better_the_variance_is_known():
    plain = pairs_needed(1e-4, 6, 0.004)
    assured = pairs_needed(1e-4, 6, 0.004, assurance=0.8)
    assert assured > plain
    assert pairs_needed(1e-4, 6, 0.004, prior_degrees=1000.0, assurance=0.8) - pairs_needed(
        1e-4, 6, 0.004, prior_degrees=1000.0
    ) < (assured - plain)


def test_with_an_assurance_of_80_percent_the_width_is_reached_that_often():
    rng = np.random.default_rng(1)
    reached = []
    for _ in range(300):
        first = rng.standard_normal(6)
        sample = np.append(first, rng.standard_normal(pairs_needed(first.var(ddof=1), 6, 0.5, assurance=0.8)))
        reached.append(half_width(sample.var(ddof=1), len(sample)) <= 0.5)
    assert np.mean(reached) > 0.8 - 3 * np.sqrt(0.16 / 300)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1, 0.1), "1 pairs"),
        ((-1.0, 6, 0.1), "variance -1"),
        ((np.nan, 6, 0.1), "variance nan"),
        ((1.0, 6, 0.0), "half width 0"),
        ((1.0, 6, 0.1, 95), "level 95"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        pairs_needed(*arguments)
