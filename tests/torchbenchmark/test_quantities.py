"""Values as people read them."""

import pytest

from torchbenchmark.quantity import quantity


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.99999, "s", "1 s"),
        (-0.99999, "s", "-1 s"),
        (0.9993, "s", "999.3 ms"),
        (9.99996e-4, "s", "1 ms"),
        (2.0**20 - 1, "B", "1 MiB"),
        (12.5e-6, "s", "12.5 µs"),
        (0.0, "s", "0 s"),
        (7.0, "1", "7"),
        (None, "s", ""),
    ],
)
def test_a_value_is_shown_in_the_largest_unit_in_which_it_is_one_or_more_as_it_is_rounded(value, unit, shown):
    assert quantity(value, unit) == shown
