"""Which nights of which series the screen is given."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from night_factory import UNITS, A, B, night_of

from baselines import series_values
from baselines.rolling import Mask, ValidNights
from baselines.screening import WINDOW
from baselines.series import NightSummary, comparable_nights, is_of_environment, segment
from baselines.series_values import series_of_night
from torchbenchmark.records import Status

ALL = ValidNights(nights=7, min_coverage=0.8)


def gathered(tonight, history, valid=ALL):
    return {
        (one.test, one.channel): one for one in series_of_night(tonight, history, dict.fromkeys(tonight.tests, valid))
    }


def runs(one):
    return [night.run for night in one.nights]


nights = st.tuples(
    st.sampled_from([1.0, 2.0, Status.CRASH, None]),
    st.sampled_from(["s", "s", "s", "ms"]),
    st.sampled_from(["w1", "w1", "w1", "w2"]),
    st.sampled_from(["env1", "env1", "env2"]),
    st.sampled_from([1, 1, 1, 20]),
)


def made(described):
    day, history = 0, []
    for value, unit, workload, fingerprint, gap in described:
        day += gap
        tests = {A: {"cpu_time": value, "latency": 1.0} if isinstance(value, float) else value, B: 1.0}
        fields = {"workloads": {A: workload}, "fingerprint": fingerprint, "units": {**UNITS, "cpu_time": unit}}
        history.append(night_of(day, tests, **fields))
    return history


tonights = st.tuples(
    st.just(1.0),
    st.sampled_from(["s", "ms"]),
    st.sampled_from(["w1", "w2"]),
    st.sampled_from(["env1", "env2"]),
    st.just(1),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(nights, max_size=8), tonights)
def test_a_series_has_the_nights_of_its_segment_that_have_a_value(before, tonight):
    *history, tonight = made([*before, tonight])
    found = gathered(tonight, history, ValidNights(nights=7, min_coverage=0))
    for (test, channel), one in found.items():
        expected = [night for night in segment(tonight, history, test, channel).nights if test in night.ok_tests]
        assert list(one.nights) == [*expected, tonight]
    assert set(found) == {(A, "cpu_time"), (A, "latency"), (B, "cpu_time")}


def test_units_aside_the_nights_of_a_test_are_those_of_its_segment():
    history = [night_of(day, {A: 1.0}, fingerprint=f"env{day % 2}") for day in range(40)]
    tonight = night_of(40, {A: 1.0}, fingerprint="env0")
    alike = [is_of_environment(night, tonight) for night in history]
    found = list(comparable_nights(tonight, history, alike, A))
    assert found[::-1] == list(segment(tonight, history, A, "cpu_time").nights)


def with_value(night: NightSummary, value: float) -> NightSummary:
    """As no record could be: for histories that were written by other hands."""
    summary = night.tests[A].channels["cpu_time"]
    changed = summary.model_copy(update={"p20": (value,), "pooled": summary.pooled.model_copy(update={"p20": value})})
    test = night.tests[A].model_copy(update={"channels": {"cpu_time": changed}})
    return night.model_copy(update={"tests": {**night.tests, A: test}})


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_a_night_whose_value_forms_no_ratio_is_left_out_and_tonight_with_one_has_no_series(value):
    history = [night_of(day, {A: 1.0}) for day in range(5)]
    history[2] = with_value(history[2], value)
    assert runs(gathered(night_of(5, {A: 1.0}), history)[A, "cpu_time"]) == [
        "r0000",
        "r0001",
        "r0003",
        "r0004",
        "r0005",
    ]
    assert gathered(with_value(night_of(5, {A: 1.0}), value), history) == {}


def test_a_test_that_vanishes_and_returns_goes_on_and_one_of_tonight_begins():
    history = [night_of(day, {A: 1.0} if 3 <= day < 9 else {A: 1.0, B: 2.0}) for day in range(12)]
    tonight = night_of(12, {A: 1.0, B: 2.0, "test_eval[new-cpu-eager]": 1.0})
    found = gathered(tonight, history)
    assert runs(found[B, "cpu_time"]) == [f"r{day:04}" for day in (0, 1, 2, 9, 10, 11, 12)]
    assert runs(found["test_eval[new-cpu-eager]", "cpu_time"]) == ["r0012"]


def test_a_channel_that_tonight_lacks_has_no_series_and_one_that_nights_lack_has_theirs():
    history = [
        night_of(day, {A: {"latency": 1.0, "cpu_time": 1.0} if day % 2 else {"latency": 1.0}}) for day in range(6)
    ]
    found = gathered(night_of(6, {A: {"cpu_time": 1.0}}), history)
    assert list(found) == [(A, "cpu_time")] and runs(found[A, "cpu_time"]) == ["r0001", "r0003", "r0005", "r0006"]


def test_counts_rates_and_the_host_probe_are_no_series():
    units = {**UNITS, "host_probe": "s"}
    channels = {"cpu_time": 1.0, "throughput": 1.0, "operators": 7.0, "host_probe": 1.0}
    assert list(gathered(night_of(1, {A: channels}, units=units), [])) == [(A, "cpu_time")]


def test_the_newest_nights_are_kept_and_no_more_than_are_looked_at():
    history = [night_of(day, {A: 1.0 + day}) for day in range(WINDOW + 20)]
    one = gathered(night_of(WINDOW + 20, {A: 9.0}), history)[A, "cpu_time"]
    assert len(one.nights) == len(one.values) == WINDOW
    assert runs(one)[0] == "r0021" and one.values[0] == 22.0 and one.values[-1] == 9.0


def test_an_alert_masks_its_nights_whether_it_is_open_or_closed():
    history = [night_of(day, {A: 1.0}) for day in range(10)]
    tonight = night_of(10, {A: 1.0})
    for until, there in ((None, [0, 1, 2, 10]), (history[6].started, [0, 1, 2, 6, 7, 8, 9, 10])):
        mask = Mask(history[3].started, until, since_open=until is None)
        valid = ValidNights(7, 0.8, (mask,))
        assert runs(gathered(tonight, history, valid)[A, "cpu_time"]) == [f"r{day:04}" for day in there]


@pytest.mark.parametrize("change", [{"fingerprint": "env2"}, {"workloads": {A: "w2"}}, {"units": {"cpu_time": "ms"}}])
def test_an_alert_says_nothing_of_the_nights_after_a_change_that_began_the_series_anew(change):
    history = [night_of(day, {A: 1.0}, **(change if day >= 6 else {})) for day in range(10)]
    valid = ValidNights(7, 0.8, (Mask(history[3].started),))
    one = gathered(night_of(10, {A: 1.0}, **change), history, valid)[A, "cpu_time"]
    assert runs(one) == [f"r{day:04}" for day in range(6, 11)]
    inside = ValidNights(7, 0.8, (Mask(history[8].started),))
    one = gathered(night_of(10, {A: 1.0}, **change), history, inside)[A, "cpu_time"]
    assert runs(one) == ["r0006", "r0007", "r0010"]


def test_the_error_is_the_median_over_nights_of_what_the_processes_say():
    processes = [(1.0, 1.1, 1.2), (2.0, 2.0), (1.0,), (1.0, 1.5, 1.1)]
    history = [night_of(day, {A: {"cpu_time": several}}) for day, several in enumerate(processes)]
    errors = [
        statistics.stdev(map(math.log, several)) / math.sqrt(len(several)) if len(several) > 1 else 0.0
        for several in processes
    ]
    one = gathered(history[-1], history[:-1])[A, "cpu_time"]
    assert one.error == pytest.approx(statistics.median(errors))
    assert gathered(history[2], [])[A, "cpu_time"].error == 0.0


def test_larger_is_slower_in_every_series():
    one = gathered(night_of(1, {A: 2.0}), [night_of(0, {A: 1.0})])[A, "cpu_time"]
    assert np.diff(one.logs) == pytest.approx(np.log(2.0))


def test_the_environments_of_two_nights_are_compared_once_however_many_series_there_are(monkeypatch):
    channels = {"cpu_time": 1.0, "latency": 1.0, "cpu_memory": 1.0}
    tests = {f"test_eval[m{index}-cpu-eager]": channels for index in range(40)}
    history = [night_of(day, tests) for day in range(120)]
    compared = []

    def noting(night, other):
        compared.append(night.run)
        return is_of_environment(night, other)

    monkeypatch.setattr(series_values, "is_of_environment", noting)
    assert len(gathered(night_of(120, tests), history)) == 120
    assert len(compared) == 120
