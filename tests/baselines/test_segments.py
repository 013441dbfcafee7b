"""How far back a series goes, and what its rolling baseline is."""

import math
import statistics

from hypothesis import given, settings
from hypothesis import strategies as st
from night_factory import A, B, night_of, run_of

from baselines.differences import differences
from baselines.rolling import Mask, ValidNights, rolling_baseline
from baselines.series import location, segment, summarise
from torchbenchmark.records import Run, Status

SEVEN = ValidNights(nights=7, min_coverage=0.8)


def test_a_baseline_is_the_median_of_its_nights_and_not_a_number_if_one_is_not():
    assert location((3.0, 1.0, 2.0)) == 2.0
    assert math.isnan(location(()))
    assert math.isnan(location((1.0, math.nan, 2.0)))
    assert math.isnan(location((1.0, math.inf, 2.0)))


def test_a_segment_goes_back_to_a_change_of_the_workload_only_for_that_test():
    history = [night_of(day, {A: 1.0, B: 1.0}, workloads={A: "w0"} if day < 2 else {}) for day in range(5)]
    tonight = night_of(5, {A: 1.0, B: 1.0})
    found = segment(tonight, history, A, "cpu_time")
    assert [night.run for night in found.nights] == ["r0002", "r0003", "r0004"]
    assert found.ended_by == "workload change" and "w0" in found.reason and "2026-03-02" in found.reason
    assert len(segment(tonight, history, B, "cpu_time").nights) == 5


def test_a_segment_does_not_reach_over_a_change_of_workload_even_if_the_old_one_comes_back():
    history = [night_of(day, {A: 1.0}, workloads={A: "w2"} if day == 2 else {}) for day in range(5)]
    found = segment(night_of(5, {A: 1.0}), history, A, "cpu_time")
    assert [night.run for night in found.nights] == ["r0003", "r0004"]
    assert found.ended_by == "workload change"


def test_machines_that_take_turns_have_the_nights_of_their_own_environment():
    history = [night_of(day, {A: 1.0}, fingerprint=f"env{day % 2}") for day in range(6)]
    found = segment(night_of(6, {A: 1.0}, fingerprint="env0"), history, A, "cpu_time")
    assert [night.run for night in found.nights] == ["r0000", "r0002", "r0004"]
    assert found.ended_by == ""
    other = segment(night_of(7, {A: 1.0}, fingerprint="env1"), history, A, "cpu_time")
    assert [night.run for night in other.nights] == ["r0001", "r0003", "r0005"]
    assert other.ended_by == "environment change", "it begins with the first night of its environment"


def test_an_environment_that_comes_back_after_more_than_a_month_begins_anew():
    history = [night_of(day, {A: 1.0}, fingerprint="env1" if day < 5 else "env2") for day in range(40)]
    found = segment(night_of(40, {A: 1.0}, fingerprint="env1"), history, A, "cpu_time")
    assert (found.nights, found.ended_by) == ((), "environment change")


def test_a_unit_that_changed_ends_the_segment():
    milliseconds = {"cpu_time": "ms"}
    history = [night_of(day, {A: 1.0}, units=milliseconds) for day in range(2)]
    found = segment(night_of(2, {A: 1.0}), history, A, "cpu_time")
    assert (found.nights, found.ended_by) == ((), "unit change")
    assert "from ms to s" in found.reason


def test_nights_without_the_test_do_not_end_its_segment():
    history = [night_of(0, {A: 1.0}), night_of(1, {B: 1.0}), night_of(2, {A: Status.OOM, B: 1.0})]
    assert len(segment(night_of(3, {A: 1.0}), history, A, "cpu_time").nights) == 3


def test_a_night_under_the_wanted_coverage_is_no_baseline():
    others = [f"test_eval[m{index}-cpu-eager]" for index in range(4)]
    full = {A: 1.0, **dict.fromkeys(others, 1.0)}
    at_80_percent = {**full, others[0]: Status.CRASH, A: 2.0}
    under = {**at_80_percent, others[1]: Status.CRASH, A: 9.0}
    history = [night_of(0, full), night_of(1, at_80_percent), night_of(2, under)]
    found = rolling_baseline(night_of(3, full), history, A, "cpu_time", "p20", SEVEN)
    assert (found.value, found.nights) == (1.5, 2)


def test_skipped_tests_do_not_lower_the_coverage():
    history = [night_of(0, {A: 1.0, B: Status.SKIPPED})]
    assert rolling_baseline(night_of(1, {A: 1.0}), history, A, "cpu_time", "p20", SEVEN).value == 1.0


def test_only_the_last_valid_nights_count():
    history = [night_of(day, {A: float(day + 1)}) for day in range(20)]
    found = rolling_baseline(night_of(20, {A: 1.0}), history, A, "cpu_time", "p20", SEVEN)
    assert (found.value, found.nights) == (17.0, 7)


def test_nights_inside_an_open_alert_are_masked_and_the_reason_is_told_when_none_is_left():
    history = [night_of(day, {A: 1.0 if day < 2 else 2.0}) for day in range(5)]
    tonight = night_of(5, {A: 2.0})
    masked = ValidNights(7, 0.8, (Mask(history[2].started),))
    assert rolling_baseline(tonight, history, A, "cpu_time", "p20", masked).value == 1.0
    all_masked = ValidNights(7, 0.8, (Mask(history[0].started),))
    found = rolling_baseline(tonight, history, A, "cpu_time", "p20", all_masked)
    assert found.value is None and "5 inside the alert open since 2026-03-01" in found.reason


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=12))
def test_the_baseline_is_the_median_of_the_last_seven_locations(values):
    history = [night_of(day, {A: value}) for day, value in enumerate(values)]
    found = rolling_baseline(night_of(99, {A: 1.0}), history, A, "cpu_time", "p20", SEVEN)
    assert found.value == statistics.median(values[-7:])


def test_two_nights_differ_in_the_fields_of_build_and_environment_that_changed():
    old = night_of(0, {A: 1.0}, fingerprint="env1", facts={"driver": "570", "cpu": "x"})
    new = night_of(1, {A: 1.0}, fingerprint="env2", facts={"driver": "575", "cpu": "x", "governor": "performance"})
    found = {(one.group, one.field): (one.old, one.new) for one in differences(old, new)}
    assert found[("environment", "driver")] == ("570", "575")
    assert found[("environment", "governor")] == (None, "performance")
    assert found[("build", "wheels.torch")] == ("2.14.0.dev0000", "2.14.0.dev0001")
    assert ("environment", "cpu") not in found
    assert differences(old, old) == []


def test_one_quick_process_of_three_keeps_the_20th_percentile_of_the_night_where_it_belongs():
    run = run_of(0, {A: {"cpu_time": (1.0, 1.8, 1.8)}})
    record = run.records[0]
    processes = tuple(
        process.model_copy(
            update={
                "channels": {
                    name: channel.model_copy(update={"samples": channel.samples * 40})
                    for name, channel in process.channels.items()
                }
            }
        )
        for process in record.processes
    )
    night = summarise(Run(run.header, (record.model_copy(update={"processes": processes}),)))
    summary = night.tests[A].channels["cpu_time"]
    assert summary.p20 == (1.0, 1.8, 1.8)
    assert summary.location("p20") == 1.0
    assert summary.location("median") == 1.8
