"""One number for one process."""

import numpy as np
import pytest
from scipy import stats

from torchbenchmark.statistics.location import collapse_to_location, statistic_for

STATISTICS = ("median", "p20", "trimmed_mean")


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_location_moves_and_scales_with_its_iterations_whatever_their_order(statistic):
    values = np.random.default_rng(1).lognormal(size=37)
    location = collapse_to_location(values, statistic)
    assert collapse_to_location(5 * values[::-1] + 2, statistic) == pytest.approx(5 * location + 2)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 10, 60])
def test_the_trimmed_mean_is_that_of_scipy(n):
    values = np.random.default_rng(n).standard_normal(n)
    assert collapse_to_location(values, "trimmed_mean") == pytest.approx(stats.trim_mean(values, 0.2))


def test_the_20th_percentile_lies_on_a_straight_line_between_two_iterations():
    assert collapse_to_location([4.0, 1.0, 3.0, 2.0], "p20") == pytest.approx(1.6)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_one_iteration_is_its_own_location(statistic):
    assert collapse_to_location([0.25], statistic) == 0.25


def test_stalls_in_a_tenth_of_the_iterations_move_no_location_by_more_than_the_noise():
    calm = np.random.default_rng(2).normal(10, 0.1, 60)
    stalled = np.where(np.arange(60) % 10 == 0, 100.0, calm)
    for statistic in STATISTICS:
        assert abs(collapse_to_location(stalled, statistic) - collapse_to_location(calm, statistic)) < 0.1


def test_the_20th_percentile_looks_beneath_stalls_that_hit_most_iterations():
    calm = np.random.default_rng(3).normal(10, 0.1, 60)
    stalled = calm + np.where(np.arange(60) % 5 < 3, 5.0, 0.0)
    assert collapse_to_location(stalled, statistic_for("host")) == pytest.approx(10, abs=0.1)
    assert collapse_to_location(stalled, statistic_for("device")) > 12


@pytest.mark.parametrize(
    ("iterations", "message"),
    [
        ([], "0 of them, at least 1"),
        ([1.0, np.nan], "value nan at 1 is not finite"),
        ([1.0, np.inf], "not finite"),
        ([[1.0, 2.0]], "shape"),
        (["fast"], "not an array of numbers"),
    ],
)
def test_iterations_that_are_no_sample_are_refused_with_what_is_wrong(iterations, message):
    with pytest.raises(ValueError, match=message):
        collapse_to_location(iterations)


def test_what_is_not_offered_is_refused_with_what_is():
    with pytest.raises(ValueError, match="choose median, p20 or trimmed_mean"):
        collapse_to_location([1.0], "minimum")
    with pytest.raises(ValueError, match="choose host or device"):
        statistic_for("wall")
