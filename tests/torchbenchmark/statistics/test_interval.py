"""An estimate with its confidence interval."""

import pytest

from torchbenchmark.statistics.interval import Interval


def test_an_interval_contains_its_ends_and_nothing_beyond():
    interval = Interval(0.01, -0.01, 0.02, 0.95)
    assert interval.contains(-0.01) and interval.contains(0.02)
    assert not interval.contains(-0.011) and not interval.contains(0.021)
    assert interval.half_width == pytest.approx(0.015)


def test_a_shifted_interval_is_as_wide_and_as_sure():
    shifted = Interval(0.01, -0.01, 0.02, 0.95).shifted(0.5)
    assert (shifted.estimate, shifted.low, shifted.high) == pytest.approx((0.51, 0.49, 0.52))
    assert shifted.level == 0.95
