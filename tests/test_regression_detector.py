"""The rules of the detector, each defined answer a test."""

import json
import math
from datetime import timedelta

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from night_factory import FIRST_NIGHT, A, B, C, equal_weights, night_of

from baselines.errors import BaselineError
from baselines.night_evidence import TOTAL
from baselines.policy import Judged, Policy
from baselines.report import Report, State
from baselines.rolling import Mask
from baselines.series import Pooled
from regression_detector import DetectorError, detect, load_policy, v1_weights
from torchbenchmark.records import Status

DEFAULT = load_policy("default")
TEN = [f"test_eval[m{index}-cpu-eager]" for index in range(10)]


def steady(nights, tests, **fields):
    return [night_of(day, dict(tests), **fields) for day in range(nights)]


def judge(tonight, history, policy=DEFAULT, **options) -> Report:
    return detect(tonight, history, policy, weights=equal_weights, **options)


def row(report, test=A):
    return next(row for row in report.rows if row.test == test)


# --- the two limits


@pytest.mark.parametrize(
    ("tonight", "state"),
    [
        (1.0, State.UNCHANGED),
        (1.07, State.UNCHANGED),
        (1.0701, State.SLOWER),
        (1 / 1.07, State.UNCHANGED),
        (0.934, State.FASTER),
    ],
)
def test_a_test_is_slower_above_7_percent_and_faster_by_symmetry_exactly_7_is_neither(tonight, state):
    report = judge(night_of(7, {A: tonight, **dict.fromkeys(TEN, 1.0)}), steady(7, {A: 1.0, **dict.fromkeys(TEN, 1.0)}))
    assert row(report).state is state
    assert row(report).change == pytest.approx(tonight - 1)
    assert report.verdict == ("regression" if state is State.SLOWER else "clean")


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-9, 1e6), st.integers(1, 400))
def test_exactly_the_limit_is_never_above_it_whatever_the_rounding(baseline, percent):
    policy = DEFAULT.model_copy(update={"per_test": percent / 100, "total": 0.99})
    for ratio, direction in ((1 + percent / 100, 1), (1 / (1 + percent / 100), -1)):
        report = judge(night_of(7, {A: baseline * ratio}), steady(1, {A: baseline}), policy)
        assert row(report).state is State.UNCHANGED
        beyond = judge(night_of(7, {A: baseline * ratio * (1 + direction * 1e-6)}), steady(1, {A: baseline}), policy)
        assert row(beyond).state is (State.SLOWER if direction > 0 else State.FASTER)


def test_a_total_more_than_1_percent_under_1000_is_a_regression_although_no_test_is_over_7():
    report = judge(night_of(7, dict.fromkeys(TEN, 1.02)), steady(7, dict.fromkeys(TEN, 1.0)))
    assert report.tests(State.SLOWER) == []
    assert report.total.score == pytest.approx(1000 / 1.02)
    assert (report.verdict, report.exit_code) == ("regression", 1)
    assert "total 980.4" in report.reason


@pytest.mark.parametrize(("ratio", "verdict"), [(1 / 0.99, "clean"), (1 / 0.9899, "regression"), (0.9, "clean")])
def test_a_total_of_exactly_990_is_no_signal_and_a_faster_one_never_is(ratio, verdict):
    assert judge(night_of(7, dict.fromkeys(TEN, ratio)), steady(7, dict.fromkeys(TEN, 1.0))).verdict == verdict


def test_the_total_is_the_weighted_geometric_mean_over_the_tests_that_both_sides_have():
    history = steady(7, {A: 1.0, B: 2.0, C: 4.0})
    report = detect(
        night_of(7, {A: 1.1, B: 1.9, C: Status.OOM, TEN[0]: 1.0}),
        history,
        DEFAULT,
        weights=lambda tests: {A: 0.75, B: 0.25} if set(tests) == {A, B} else {},
    )
    assert report.total.score == pytest.approx(1000 * math.exp(0.75 * math.log(1 / 1.1) + 0.25 * math.log(2 / 1.9)))
    assert report.total.tests == 2


def test_the_weights_are_those_of_score_v1_and_a_model_of_no_category_is_left_out_of_the_total_and_named():
    assert v1_weights([A, B]) == {A: 0.5, B: 0.5}  # two categories
    unknown = "test_eval[somebodys_own-cpu-eager]"
    report = detect(night_of(7, {A: 1.0, unknown: 1.5}), steady(7, {A: 1.0, unknown: 1.0}), DEFAULT)
    assert report.total.score == pytest.approx(1000) and report.total.left_out == (unknown,)
    assert row(report, unknown).state is State.SLOWER


def test_a_channel_where_higher_is_better_is_slower_when_it_falls():
    policy = DEFAULT.model_copy(update={"judged": {"cpu": (Judged(channel="throughput", statistic="median"),)}})
    history = steady(7, {A: {"throughput": 100.0}})
    assert row(judge(night_of(7, {A: {"throughput": 80.0}}), history, policy)).change == pytest.approx(0.25)
    assert row(judge(night_of(7, {A: {"throughput": 120.0}}), history, policy)).state is State.FASTER


@settings(max_examples=50, deadline=None)
@given(st.floats(0.2, 5), st.floats(1e-6, 1e3))
def test_undoing_a_regression_is_an_improvement_and_the_reverse(ratio, base):
    there = row(judge(night_of(1, {A: base * ratio}), [night_of(0, {A: base})])).state
    back = row(judge(night_of(1, {A: base}), [night_of(0, {A: base * ratio})])).state
    mirrored = {State.SLOWER: State.FASTER, State.FASTER: State.SLOWER, State.UNCHANGED: State.UNCHANGED}
    assert back is mirrored[there]


def test_the_flat_verdict_is_in_the_report_whatever_the_policy_says():
    tests = dict.fromkeys(TEN, 1.0)
    report = judge(night_of(7, {**tests, TEN[0]: 1.08}), steady(7, tests), load_policy("smoke"))
    assert report.verdict == "clean"
    assert report.flat.verdict == "regression" and TEN[0] in report.flat.reason


# --- which channel, which nights


def test_the_first_judged_channel_that_is_measured_and_recorded_tonight_is_used():
    history = steady(3, {A: {"latency": 1.0, "cpu_time": 1.0}}, device="cuda")
    report = judge(night_of(7, {A: {"latency": 1.2, "cpu_time": 1.0}}, device="cuda"), history)
    assert (row(report).channel, row(report).statistic) == ("latency", "median")
    assert row(report).others == {"cpu_time": 0.0}


def test_a_policy_that_names_no_channel_for_the_device_is_an_error():
    policy = DEFAULT.model_copy(update={"judged": {"cpu": DEFAULT.judged["cpu"]}})
    with pytest.raises(BaselineError, match="no channel for the device 'cuda'"):
        judge(night_of(7, {A: 1.0}, device="cuda"), [], policy)


def test_a_slow_night_inside_an_open_alert_never_becomes_the_baseline():
    slow = [night_of(day, {A: 1.2, **dict.fromkeys(TEN, 1.0)}) for day in range(3, 30)]
    history = steady(3, {A: 1.0, **dict.fromkeys(TEN, 1.0)}) + slow
    tonight = night_of(30, {A: 1.2, **dict.fromkeys(TEN, 1.0)})
    assert row(judge(tonight, history)).state is State.UNCHANGED  # without the alert it has become normal
    report = judge(tonight, history, open_alerts={A: slow[0].started})
    assert row(report).change == pytest.approx(0.2)
    assert row(report).nights == 3 and row(report).alert == slow[0].started
    assert row(report, TEN[0]).nights == 7  # other tests have their own nights


def test_the_nights_of_an_alert_stay_masked_when_it_is_closed():
    slow = [night_of(day, {A: 1.2}) for day in range(3, 9)]
    good = [night_of(day, {A: 1.0}) for day in range(9, 11)]
    closed = {A: [Mask(slow[0].started, good[0].started, since_open=False)]}
    report = judge(night_of(11, {A: 1.0}), [*steady(3, {A: 1.0}), *slow, *good], masks=closed)
    assert (row(report).baseline, row(report).nights, row(report).alert) == (1.0, 5, None)
    assert row(judge(night_of(11, {A: 1.0}), [*slow, *good])).state is State.FASTER


def test_an_alert_of_the_total_masks_its_nights_for_every_test():
    history = steady(3, {A: 1.0, B: 1.0}) + [night_of(day, {A: 1.03, B: 1.03}) for day in range(3, 20)]
    tonight = night_of(20, {A: 1.03, B: 1.03})
    report = judge(tonight, history, open_alerts={TOTAL: "2026-03-04T00:00:00Z"})
    assert report.total.score == pytest.approx(1000 / 1.03)
    assert report.total.state is State.SLOWER
    assert report.verdict == "regression"


def test_an_alert_without_a_time_is_an_error():
    with pytest.raises(DetectorError, match="open alerts"):
        judge(night_of(1, {A: 1.0}), [], open_alerts={A: "yesterday"})


def test_if_every_night_is_inside_the_alert_the_test_is_not_comparable():
    report = judge(night_of(7, {A: 1.0}), steady(7, {A: 1.0}), open_alerts={A: FIRST_NIGHT})
    assert row(report).state is State.NOT_COMPARABLE and "inside the alert" in row(report).reason


def test_a_night_with_too_little_coverage_is_no_baseline():
    poor = night_of(1, {A: 5.0, **dict.fromkeys(TEN, Status.CRASH)})
    history = [night_of(0, {A: 1.0, **dict.fromkeys(TEN, 1.0)}), poor]
    report = judge(night_of(2, {A: 1.0, **dict.fromkeys(TEN, 1.0)}), history)
    assert row(report).nights == 1 and row(report).change == 0
    assert report.baseline.run == "r0000"


def test_seven_nights_of_3_percent_each_are_seen_and_the_pin_shows_the_whole_way():
    nights = [night_of(day, {A: 1.03**day, **dict.fromkeys(TEN, 1.0)}) for day in range(8)]
    report = judge(nights[7], nights[:7], pinned=nights[0])
    assert row(report).change == pytest.approx(1.03**4 - 1)  # against the middle one of the seven
    assert row(report).pin_change == pytest.approx(1.03**7 - 1)
    assert report.verdict == "regression"
    assert report.pin_total.score < report.total.score < 1000
    first = next(day for day in range(1, 8) if row(judge(nights[day], nights[:day])).state is State.SLOWER)
    assert first == 4


def test_the_pin_is_not_compared_if_the_environment_was_another():
    tonight = night_of(7, {A: 1.0})
    report = judge(tonight, steady(2, {A: 1.0}), pinned=night_of(0, {A: 1.0}, fingerprint="other"))
    assert row(report).pin_change is None and report.pin is not None and report.pin_total is None


def test_tonight_among_the_nights_is_left_out_and_their_order_does_not_matter():
    history = [night_of(day, {A: 1.0 + day}) for day in range(9)]
    tonight = night_of(9, {A: 6.0})
    report = judge(tonight, [tonight, *reversed(history)])
    assert report == judge(tonight, history)
    assert row(report).baseline == 6.0


# --- segments


def test_another_workload_is_a_workload_change_and_never_a_regression():
    tests = dict.fromkeys([A, *TEN], 1.0)
    report = judge(night_of(7, {**tests, A: 9.0}, workloads={A: "w2"}), steady(7, tests))
    assert row(report).state is State.WORKLOAD_CHANGE and row(report).change is None
    assert "w1" in row(report).reason and "w2" in row(report).reason
    assert report.verdict == "clean" and "1 workload change" in report.reason


def test_the_night_after_a_workload_change_is_compared_with_the_new_workload():
    history = [*steady(5, {A: 1.0}), night_of(5, {A: 9.0}, workloads={A: "w2"})]
    assert row(judge(night_of(6, {A: 9.0}, workloads={A: "w2"}), history)).change == 0


def test_another_environment_is_an_environment_change_and_the_changed_fields_are_shown():
    history = steady(7, {A: 1.0, B: 1.0}, facts={"driver": "570"})
    report = judge(night_of(7, {A: 9.0, B: 9.0}, fingerprint="env2", facts={"driver": "575"}), history)
    assert report.tests(State.ENVIRONMENT_CHANGE) == [B, A]
    assert (report.verdict, report.exit_code) == ("baseline made", 0)
    shown = {(one.group, one.field): (one.old, one.new) for one in report.differences}
    assert shown[("environment", "driver")] == ("570", "575")
    assert shown[("build", "version")] == ("2.14.0.dev0006", "2.14.0.dev0007")


@pytest.mark.parametrize("field", ["suite", "machine_class"])
def test_another_suite_or_class_is_an_error_that_names_both(field):
    for options in ({"history": [night_of(0, {A: 1.0}, **{field: "other"})]}, {"pinned": None}):
        history = options.get("history", [])
        pinned = None if history else night_of(0, {A: 1.0}, **{field: "other"})
        with pytest.raises(DetectorError, match=r"'(smoke|cpu-4t)', run r0000 of 'other'"):
            judge(night_of(1, {A: 1.0}), history, pinned=pinned)


# --- values that cannot be compared


def with_value(night, test, value, channel="cpu_time"):
    """A night as no record could give it: built by hand."""
    summary = night.tests[test]
    pooled = Pooled.model_construct(p20=value, median=value, mean=value)
    values = {"p20": (value,), "median": (value,), "mean": (value,), "pooled": pooled}
    measured = summary.channels[channel].model_copy(update=values)
    changed = summary.model_copy(update={"channels": {**summary.channels, channel: measured}})
    return night.model_copy(update={"tests": {**night.tests, test: changed}})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_a_value_that_is_not_a_positive_number_is_not_comparable_on_either_side(value):
    good = night_of(0, {A: 1.0, B: 1.0})
    tonight = with_value(night_of(1, {A: 1.0, B: 1.0}), A, value)
    for report in (judge(tonight, [good]), judge(night_of(1, {A: 1.0, B: 1.0}), [with_value(good, A, value)])):
        assert row(report).state is State.NOT_COMPARABLE
        assert "not a positive number" in row(report).reason
        assert row(report).change is None and report.total.tests == 1
        assert report.verdict == "clean"
        assert Report.model_validate_json(report.to_json()) == report


def test_one_bad_night_does_not_spoil_the_baseline_of_the_others():
    history = [night_of(0, {A: 1.0}), with_value(night_of(1, {A: 1.0}), A, math.nan), night_of(2, {A: 1.0})]
    assert row(judge(night_of(3, {A: 1.0}), history)).nights == 2


def test_a_ratio_out_of_all_proportion_is_not_comparable():
    report = judge(night_of(1, {A: 1e17}), [night_of(0, {A: 1e-300})])
    assert row(report).state is State.NOT_COMPARABLE and "proportion" in row(report).reason


def test_a_channel_that_is_missing_on_one_side_is_not_comparable():
    without = {A: {"latency": 1.0}}
    tonight = judge(night_of(7, without), steady(7, {A: 1.0}))
    assert row(tonight).state is State.NOT_COMPARABLE and "none of the judged channels" in row(tonight).reason
    before = judge(night_of(7, {A: 1.0}), steady(7, without))
    assert row(before).state is State.NOT_COMPARABLE and "7 without cpu_time" in row(before).reason


def test_another_unit_is_not_comparable():
    report = judge(night_of(7, {A: 1.0}), steady(7, {A: 1000.0}, units={"cpu_time": "ms"}))
    assert row(report).state is State.NOT_COMPARABLE
    assert "unit changed from ms to s" in row(report).reason


# --- tests that come, go and fail


def test_a_test_that_was_ok_and_fails_tonight_is_a_regression_with_its_reason():
    report = judge(night_of(7, {A: Status.CRASH, B: 1.0}), steady(7, {A: 1.0, B: 1.0}))
    assert row(report).state is State.NEWLY_FAILING and row(report).reason == "crash: planted crash"
    assert report.verdict == "regression" and A in report.reason
    assert report.flat.verdict == "regression"


def test_a_planned_test_without_a_record_is_failing_too():
    report = judge(night_of(7, {A: None, B: 1.0}), steady(7, {A: 1.0, B: 1.0}))
    assert row(report).state is State.NEWLY_FAILING and "no record" in row(report).reason


def test_a_test_that_still_fails_is_no_new_regression():
    report = judge(night_of(7, {A: Status.CRASH, B: 1.0}), steady(7, {A: Status.OOM, B: 1.0, **dict.fromkeys(TEN, 1)}))
    assert row(report).state is State.STILL_FAILING and report.verdict == "clean"


def test_a_night_of_too_little_coverage_does_not_make_a_failure_old():
    tests = {A: 1.0, **dict.fromkeys(TEN, 1.0)}
    history = [*steady(3, tests), night_of(3, dict.fromkeys(tests, Status.TIMEOUT) | {TEN[0]: 1.0})]
    assert row(judge(night_of(4, {**tests, A: Status.TIMEOUT}), history)).state is State.NEWLY_FAILING


def test_a_test_that_is_ok_again_is_fixed_and_compared_with_the_nights_before_it_failed():
    history = [*steady(3, {A: 1.0, **dict.fromkeys(TEN, 1)}), night_of(3, {A: Status.CRASH, **dict.fromkeys(TEN, 1)})]
    report = judge(night_of(4, {A: 1.05, **dict.fromkeys(TEN, 1)}), history)
    assert row(report).state is State.FIXED and row(report).change == pytest.approx(0.05)
    back_but_slow = judge(night_of(4, {A: 2.0, **dict.fromkeys(TEN, 1)}), history)
    assert row(back_but_slow).state is State.SLOWER and "was crash" in row(back_but_slow).reason
    never_ok = judge(night_of(4, {A: 1.0, B: 1.0}), steady(3, {A: Status.OOM, B: 1.0, **dict.fromkeys(TEN, 1)}))
    assert row(never_ok).state is State.FIXED and row(never_ok).change is None


def test_new_and_gone_tests_are_told_and_no_regression():
    report = judge(night_of(7, {A: 1.0, B: 1.0}), steady(7, {A: 1.0, C: 1.0}))
    assert (report.tests(State.NEW), report.tests(State.GONE)) == ([B], [C])
    assert report.verdict == "clean" and "1 gone, 1 new" in report.reason


def test_a_new_test_that_fails_at_once_is_new():
    report = judge(night_of(7, {A: 1.0, B: Status.ERROR}), steady(7, {A: 1.0}))
    assert row(report, B).state is State.NEW and report.verdict == "clean"


def test_a_test_that_is_skipped_from_tonight_is_gone_with_the_reason_and_comes_back_as_itself():
    tests = {A: 1.0, **dict.fromkeys(TEN, 1.0)}
    skipped = judge(night_of(7, {**tests, A: Status.SKIPPED}), steady(7, tests))
    assert row(skipped).state is State.GONE and "skipped" in row(skipped).reason
    history = [*steady(7, tests), night_of(7, {**tests, A: Status.SKIPPED})]
    assert row(judge(night_of(8, tests), history)).state is State.UNCHANGED
    assert row(judge(night_of(8, {**tests, A: Status.SKIPPED}), history)).state is State.NOT_COMPARABLE
    never = steady(3, {**tests, A: Status.UNSUPPORTED})
    assert row(judge(night_of(8, tests), never)).state is State.NEW


# --- verdicts


def test_the_first_night_makes_the_baseline():
    report = judge(night_of(0, {A: 1.0, B: Status.OOM}), [])
    assert (report.verdict, report.exit_code) == ("baseline made", 0)
    assert report.total is None and report.baseline is None
    assert "coverage 50%: no baseline either" in report.reason


def test_a_night_without_any_test_ok_is_broken_and_says_how():
    report = judge(night_of(7, {A: Status.CRASH, B: Status.OOM, C: None}), steady(7, {A: 1.0, B: 1.0}))
    assert (report.verdict, report.exit_code) == ("broken", 2)
    assert report.reason == "no test ended ok: 1 crash, 1 oom, 1 without a record"


def test_a_count_that_changed_is_shown_exactly():
    before = {A: {"cpu_time": 1.0, "operators": 412, "flops": 1e9}}
    report = judge(night_of(7, {A: {"cpu_time": 1.0, "operators": 413, "flops": 1e9}}), steady(7, before))
    assert [(one.channel, one.baseline, one.tonight) for one in report.counts] == [("operators", 412, 413)]
    assert "operators" not in row(report).others
    assert report.verdict == "clean"
    none = judge(night_of(7, {A: {"cpu_time": 1.0, "operators": 3}}), steady(7, {A: {"cpu_time": 1.0, "operators": 0}}))
    assert [(one.baseline, one.tonight) for one in none.counts] == [(0, 3)]


def test_a_regression_is_not_hidden_by_one_night_on_another_machine():
    history = [*steady(7, {A: 1.0}), night_of(7, {A: 1.5}, fingerprint="env2")]
    assert judge(night_of(8, {A: 1.5}), history).verdict == "regression"


def test_an_environment_that_changes_every_night_is_broken_from_the_third_blind_night_on():
    nights = [night_of(day, {A: 1.0}, fingerprint=f"env{day}") for day in range(6)]
    verdicts = [judge(night, nights[:day]).verdict for day, night in enumerate(nights)]
    assert verdicts == ["baseline made"] * 3 + ["broken"] * 3
    told = judge(nights[5], nights[:5]).reason
    assert "5 nights in a row could not be compared" in told and "1 environment change" in told


def test_nights_whose_coverage_stays_too_low_for_a_baseline_are_broken_from_the_third_blind_night_on():
    half = {A: 1.0, B: Status.CRASH}
    nights = [night_of(day, half) for day in range(5)]
    verdicts = [judge(night, nights[:day]).verdict for day, night in enumerate(nights)]
    assert verdicts == ["baseline made"] * 3 + ["broken"] * 2
    assert "coverage 50%" in judge(nights[4], nights[:4]).reason


def test_one_night_after_a_change_of_the_environment_is_no_more_than_a_new_baseline():
    moved = [night_of(day, {A: 1.0}, fingerprint="env2") for day in (7, 8)]
    assert judge(moved[0], steady(7, {A: 1.0})).verdict == "baseline made"
    assert judge(moved[1], [*steady(7, {A: 1.0}), moved[0]]).verdict == "clean"


def test_the_build_that_tonight_is_compared_with_was_measured_in_the_same_environment():
    history = [*steady(7, {A: 1.0}), night_of(7, {A: 1.0}, fingerprint="env2")]
    report = judge(night_of(8, {A: 1.5}), history)
    assert report.baseline.run == "r0006"


statuses = st.sampled_from([*Status, None])
nights = st.dictionaries(st.sampled_from([A, B, C]), st.one_of(st.floats(1e-9, 1e9), statuses), min_size=1)


@settings(max_examples=60, deadline=None)
@given(st.lists(nights, max_size=5), nights, st.booleans())
def test_any_nights_give_one_row_per_test_and_a_report_that_loads_again(before, tonight, alert):
    history = [night_of(day, tests, fingerprint=f"env{day // 3}") for day, tests in enumerate(before)]
    report = judge(
        night_of(5, tonight, fingerprint="env1"),
        history,
        open_alerts={A: history[-1].started} if alert and history else {},
    )
    assert len({row.test for row in report.rows}) == len(report.rows)
    assert set(tonight) <= {row.test for row in report.rows}
    assert Report.model_validate(json.loads(report.to_json())) == report
    assert Report.model_validate(yaml.safe_load(report.to_yaml())) == report
    no_data = not any(isinstance(what, float) or what is Status.OK for what in tonight.values())
    assert (report.verdict == "broken") == (no_data or "could not be compared" in report.reason)
    assert all(row.change is None or math.isfinite(row.change) for row in report.rows)


# --- policies


def test_the_policies_that_come_with_the_project_are_the_seeds_and_a_wide_one():
    assert (DEFAULT.per_test, DEFAULT.total, DEFAULT.nights, DEFAULT.min_coverage) == (0.07, 0.01, 7, 0.8)
    assert DEFAULT.judged["cpu"] == (Judged(channel="cpu_time", statistic="p20"),)
    assert [one.channel for one in DEFAULT.judged["cuda"]] == ["gpu_time", "latency"]
    smoke = load_policy("smoke")
    assert (smoke.per_test, smoke.total) == (0.25, 0.1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: x\n", "judged"),
        ("name: x\njudged: {cpu: [{channel: cpu_tme, statistic: p20}]}\n", "none of its channels is measured"),
        ("name: x\njudged: {cpu: [{channel: cpu_time, statistic: p99}]}\n", "statistic"),
        ("name: x\nper_test: .nan\njudged: {cpu: [{channel: cpu_time, statistic: p20}]}\n", "per_test"),
        ("name: x\nnights: 0\njudged: {cpu: [{channel: cpu_time, statistic: p20}]}\n", "nights"),
        ("name: x\nnights: '7'\njudged: {cpu: [{channel: cpu_time, statistic: p20}]}\n", "nights"),
        ("name: x\nper_tset: 0.1\njudged: {cpu: [{channel: cpu_time, statistic: p20}]}\n", "per_tset"),
        ("name: [x\n", ":2"),
    ],
)
def test_a_policy_that_is_not_right_names_file_and_key(tmp_path, content, message):
    path = tmp_path / "own.yaml"
    path.write_text(content)
    with pytest.raises(BaselineError) as raised:
        load_policy(str(path))
    assert str(path) in str(raised.value) and message in str(raised.value)


def test_an_unknown_policy_is_told_with_the_known_ones():
    with pytest.raises(BaselineError, match="known: default, smoke"):
        load_policy("strict")


def test_a_policy_of_ones_own_needs_only_what_differs(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("name: own\nper_test: 0.5\njudged: {cpu: [{channel: latency, statistic: mean}]}\n")
    assert load_policy(str(path)) == Policy(
        name="own", per_test=0.5, judged={"cpu": (Judged(channel="latency", statistic="mean"),)}
    )


def test_thirty_nights_of_the_same_are_clean():
    history = steady(30, dict.fromkeys([A, B, C], 1.0))
    report = judge(night_of(30, dict.fromkeys([A, B, C], 1.0)), history)
    assert report.verdict == "clean" and report.total.score == 1000
    assert report.tonight.started - report.baseline.started == timedelta(days=1)


def test_a_run_of_a_selection_does_not_call_the_rest_gone():
    whole = night_of(0, {A: 1.0, B: 1.0})
    part = night_of(1, {A: 1.5}).model_copy(update={"selection": (A,)})
    report = judge(part, [whole])
    assert report.tests(State.GONE) == []
    assert report.tests(State.SLOWER) == [A]


def test_a_night_measured_with_other_settings_is_another_environment():
    before = night_of(0, {A: 1.0})
    longer = before.measuring.model_copy(update={"budget_s": 5.0})
    patient = before.measuring.model_copy(update={"timeout_s": 900.0})
    tonight = night_of(1, {A: 2.0})
    assert row(judge(tonight.model_copy(update={"measuring": longer}), [before])).state is State.ENVIRONMENT_CHANGE
    assert row(judge(tonight.model_copy(update={"measuring": patient}), [before])).state is State.SLOWER
