"""Stored nights as the rules of confirming look at them."""

import math

import numpy as np
import pytest
from night_factory import A, B, night_of

from baselines.confirming.class_nights import seen_tonight
from baselines.policy import Judged, load_policy
from torchbenchmark.records import Status

OTHERS = [f"test_eval[m{number}-cpu-eager]" for number in range(5)]
POLICY = load_policy("default")


def test_series_are_the_judged_channels_of_tonights_tests_over_all_nights():
    nights = [night_of(day, {A: {"cpu_time": [1.0, 2.0, 4.0], "cpu_memory": [1e6] * 3}, B: 3.0}) for day in range(4)]
    seen = seen_tonight(nights[-1], nights[:-1], POLICY)
    assert [(key.test, key.channel) for key in seen.series] == [(B, "cpu_time"), (A, "cpu_time")]
    assert seen.builds == tuple(night.build.id for night in nights) and seen.tonight == nights[-1].started
    assert seen.logs == pytest.approx(np.log([[3.0] * 4, [1.4] * 4]))  # the policy's p20, of all processes
    assert np.isnan(seen.variances[0]).all(), "of one process nothing can be said"
    assert seen.variances[1] == pytest.approx(np.log(2) ** 2)
    assert seen.processes == 3


def test_a_night_without_the_test_has_no_value_and_moves_no_other():
    nights = [
        night_of(day, {**ended, **dict.fromkeys(OTHERS, 1.0)})
        for day, ended in enumerate([{A: 1.0}, {A: Status.CRASH}, {}, {A: 2.0}])
    ]
    seen = seen_tonight(nights[-1], nights[:-1], POLICY)
    row = [key.test for key in seen.series].index(A)
    assert seen.logs[row] == pytest.approx([0.0, math.nan, math.nan, math.log(2)], nan_ok=True)


def test_a_change_of_the_workload_begins_the_series_anew_and_no_other():
    nights = [night_of(day, {A: 1.0, B: 1.0}, workloads={A: f"w{day // 3}"}) for day in range(5)]
    seen = seen_tonight(nights[-1], nights[:-1], POLICY)
    row = [key.test for key in seen.series].index(A)
    assert np.isnan(seen.logs[row]).tolist() == [True] * 3 + [False] * 2
    assert np.isfinite(seen.logs[1 - row]).all()


def test_another_unit_and_a_value_of_zero_are_no_value():
    nights = [
        night_of(0, {A: 1000.0}, units={"cpu_time": "ms"}),
        night_of(1, {A: 0.0}),
        night_of(2, {A: 1.0}),
    ]
    seen = seen_tonight(nights[-1], nights[:-1], POLICY)
    assert np.isnan(seen.logs[0]).tolist() == [True, True, False]


def test_a_night_with_few_tests_or_measured_otherwise_is_none():
    tonight = night_of(3, {A: 1.0, B: 1.0})
    few = night_of(1, {A: 1.0, B: Status.CRASH})
    other = night_of(2, {A: 1.0, B: 1.0})
    other = other.model_copy(update={"measuring": other.measuring.model_copy(update={"budget_s": 9.0})})
    seen = seen_tonight(tonight, [night_of(0, {A: 1.0, B: 1.0}), few, other], POLICY)
    assert [night.day for night in seen.nights] == [1, 4]


def test_environments_and_runners_are_told_and_runners_that_take_turns_are_aligned():
    nights = [night_of(day, {A: 1.0 + 0.1 * (day % 2)}, host=f"h{day % 2}", fingerprint="e") for day in range(12)]
    seen = seen_tonight(nights[-1], nights[:-1], POLICY)
    assert set(seen.environments) == {"e"} and set(seen.runners) == {"h0", "h1"}
    assert np.ptp(seen.logs[0]) == pytest.approx(0.0)


def test_a_night_of_which_nothing_is_judged_is_none():
    assert seen_tonight(night_of(0, {A: Status.CRASH}), [], POLICY) is None
    assert seen_tonight(night_of(0, {A: {"cpu_memory": 5.0}}), [], POLICY) is None


def test_a_rate_is_left_to_the_time_that_it_is_the_inverse_of():
    both = {"throughput": 5.0, "cpu_time": 0.2}
    judged = (Judged(channel="throughput", statistic="median"), Judged(channel="cpu_time", statistic="p20"))
    policy = POLICY.model_copy(update={"judged": {"cpu": judged}})
    assert [key.channel for key in seen_tonight(night_of(0, {A: both}), [], policy).series] == ["cpu_time"]
