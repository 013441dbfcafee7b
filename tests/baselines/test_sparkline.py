"""A history in one line of text."""

import numpy as np
import pytest

from baselines.sparkline import marks, sparkline


def line(values, width=100) -> str:
    return sparkline(np.array(values, dtype=float), width)


def test_low_is_a_low_block_and_high_a_high_one():
    assert line([1, 1, 1, 1, 2, 2, 2, 2]) == "▁▁▁▁████"
    assert line([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"


def test_a_spike_is_a_full_block_and_leaves_the_rest_as_it_is():
    calm = [1.0, 2.0] * 50
    spiked = [*calm[:49], 1000.0, *calm[50:]]
    assert line(spiked) == f"{line(calm)[:49]}█{line(calm)[50:]}"
    assert set(line(calm)) == {"▁", "█"}


def test_more_nights_than_columns_are_put_together_by_their_median():
    values = [1.0, 1.0, 50.0, 1.0] * 10 + [2.0, 2.0, 2.0, 0.0] * 10
    assert line(values, 20) == "▁" * 10 + "█" * 10


def test_a_constant_series_is_a_flat_line_and_none_is_nothing():
    assert line([5.0] * 10) == "▄" * 10
    assert line([5.0]) == "▄"
    assert line([]) == ""


@pytest.mark.parametrize("nights", [1, 2, 7, 99, 100, 101, 1000])
def test_it_is_no_wider_than_asked_and_every_night_has_its_mark_inside(nights):
    assert len(line(range(nights))) == min(nights, 100)
    for night in (0, nights // 2, nights - 1):
        assert len(marks(nights, 100, [(night, "▲")])) <= min(nights, 100)


def test_a_mark_stands_under_the_column_of_its_night():
    assert marks(8, 100, [(4, "▲"), (7, "▼")]) == "    ▲  ▼"
    assert marks(80, 20, [(40, "▲")]) == " " * 10 + "▲"
