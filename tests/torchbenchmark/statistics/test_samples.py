"""What a sample must be before anything is computed from it."""

import numpy as np
import pytest

from torchbenchmark.statistics.samples import finite_number, finite_table, finite_vector, probability


def test_a_sample_is_copied_so_that_nothing_computed_from_it_changes_the_callers_numbers():
    given = np.array([1.0, 2.0])
    finite_vector(given, "values")[0] = 9.0
    finite_table(given[None], "values")[0, 0] = 9.0
    assert given.tolist() == [1.0, 2.0]


def test_whole_numbers_become_floats():
    assert finite_vector([1, 2], "values").dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: finite_vector([], "pairs"), "pairs: 0 of them, at least 1 are needed; measure more"),
        (lambda: finite_vector(3.0, "pairs"), r"pairs: shape \(\), but one value each"),
        (lambda: finite_vector([None], "pairs"), "pairs: value nan at 0 is not finite"),
        (lambda: finite_vector(["1s"], "pairs"), "pairs: not an array of numbers"),
        (lambda: finite_table(np.zeros((3, 0)), "pairs"), "m >= 1"),
        (lambda: finite_table([[0.0, np.inf]], "pairs"), r"value inf at \(0, 1\)"),
        (lambda: probability(0.0, "level"), "level 0.0: a number between 0 and 1"),
        (lambda: probability(np.nan, "level"), "level nan"),
        (lambda: finite_number(np.inf, "margin"), "margin inf: a finite number is needed"),
        (lambda: finite_number(-1, "margin", at_least=0), "not below 0 is needed"),
    ],
)
def test_what_is_no_sample_is_refused_by_name_with_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()
