"""The median of the Walsh averages."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbenchmark.statistics.hodges_lehmann import hodges_lehmann, walsh_averages

samples = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)


def test_the_depression_scores_of_hollander_and_wolfe_give_the_published_estimate_and_averages():
    """Table 3.1 there: Hamilton depression scale factor IV before and after; theta = -.460, 45 Walsh averages."""
    before = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    after = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    averages = walsh_averages(after - before)
    assert len(averages) == 45
    assert hodges_lehmann(after - before) == pytest.approx(-0.460, abs=0.0005)


@given(samples)
def test_it_is_the_median_of_the_means_of_all_pairs_and_of_each_with_itself(values):
    by_hand = [a / 2 + b / 2 for a, b in itertools.combinations_with_replacement(values, 2)]
    assert walsh_averages(values) == pytest.approx(np.sort(by_hand))
    assert hodges_lehmann(values) == pytest.approx(np.median(by_hand))


@given(samples, st.floats(-1e3, 1e3))
def test_it_moves_with_its_sample_and_turns_with_it(values, shift):
    tolerance = 1e-9 * (1 + max(map(abs, values)) + abs(shift))
    assert hodges_lehmann(np.add(values, shift)) == pytest.approx(hodges_lehmann(values) + shift, abs=tolerance)
    assert hodges_lehmann(np.negative(values)) == pytest.approx(-hodges_lehmann(values), abs=tolerance)


def test_a_quarter_of_wild_pairs_cannot_carry_it_away():
    values = np.random.default_rng(4).normal(0, 1, 20)
    values[:5] = 1e9
    assert abs(hodges_lehmann(values)) < 2


def test_iterations_in_the_place_of_locations_are_refused():
    with pytest.raises(ValueError, match="collapse the iterations of each process"):
        hodges_lehmann(np.zeros(5000))
