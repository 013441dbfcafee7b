"""Means and ranks of both sides against scipy, and the dating of an onset."""

import numpy as np
import pytest
from scipy import stats

from baselines.screening.shift_test import SIDE, Sides, compare_levels, date, gather, ranks_differ, trimmed_means


def sides_of(before, after, scale=1.0):
    nights = np.full((1, 2 * SIDE), np.nan)
    nights[0, SIDE - len(before) : SIDE] = before
    nights[0, SIDE : SIDE + len(after)] = after
    return Sides(nights, np.array([scale]))


@pytest.mark.parametrize("count", [1, 2, 4, 5, 7, 8, 20])
def test_trimmed_means_are_those_of_scipy(count):
    values = np.random.default_rng(count).standard_t(2, count)
    padded = np.concatenate([values, np.full(5, np.nan)])[None]
    assert trimmed_means(padded)[0] == pytest.approx(stats.trim_mean(values, 0.25))


def test_of_three_nights_the_middle_one_counts():
    assert trimmed_means(np.array([[1.0, 50.0, 2.0]]))[0] == 2.0


@pytest.mark.parametrize("seed", range(6))
def test_ranks_are_those_of_mann_and_whitney(seed):
    generator = np.random.default_rng(seed)
    before, after = generator.normal(0, 1, 20).round(1), generator.normal(0.8, 1, 9).round(1)
    n, m = len(before), len(after)
    u = stats.mannwhitneyu(after, before).statistic
    z = abs(u - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12)
    sides, moved = sides_of(before, after), np.array([0])
    assert ranks_differ(sides, moved, z - 1e-9)[0]
    assert not ranks_differ(sides, moved, z + 1e-9)[0]


def test_few_nights_must_be_all_but_fully_separated():
    before = np.arange(20.0)
    assert ranks_differ(sides_of(before, [30.0, 31.0, 32.0]), np.array([0]), 9.0)[0]
    assert not ranks_differ(sides_of(before, [30.0, 31.0, 15.5]), np.array([0]), 9.0)[0]


def test_a_step_is_judged_against_floors_however_many_nights_there_are():
    quiet = sides_of(np.zeros(20), np.full(20, 0.002), scale=1e-4)
    assert compare_levels(quiet, np.array([0])).statistic[0] < 2.01
    noisy = sides_of(np.zeros(20), np.full(20, 0.01), scale=0.02)
    assert compare_levels(noisy, np.array([0])).statistic[0] < 0.01 / (0.3 * 0.02)


def test_an_onset_is_dated_where_the_levels_meet_best():
    for off in (-3, -1, 0, 2, 3):
        before, after = np.zeros(20), np.ones(15)
        nights = np.concatenate([before, after])
        cut = 20 + off
        dated = date(sides_of(nights[max(0, cut - 20) : cut], nights[cut : cut + 20], scale=0.1))
        assert (dated.moved[0], dated.low[0], dated.high[0]) == (-off, -off, -off)


def test_nights_between_the_levels_widen_the_onset():
    dated = date(sides_of(np.zeros(20), [0.5, 0.5, 1, 1, 1, 1, 1, 1], scale=0.2))
    assert dated.high[0] - dated.low[0] >= 2


def test_gathering_takes_only_the_nights_of_both_segments():
    logs = np.arange(100.0)[None]
    found = gather(logs, np.array([0]), np.array([45]), np.array([50]), np.array([53]))[0]
    assert found[np.isfinite(found)].tolist() == [45, 46, 47, 48, 49, 50, 51, 52]
    assert found[SIDE] == 50
