"""A night in shards of which one has not come: the others are judged, the missing one is named, nothing is made up."""

import dataclasses
from datetime import timedelta

import pytest
from night_factory import A, B, C, equal_weights, run_of, shards_of

from baselines.report import State
from baselines.runs import load_run, store_run
from baselines.series import NightSummary, summarise
from baselines.store.folder import FolderStore
from bot.github.alert import Alert, masks
from bot.github.alerts import apply_report
from regression_detector import detect, load_policy
from torchbenchmark.records import Status

POLICY = load_policy("default")
GOOD = {A: 1.0, B: 1.0, C: 1.0}


@pytest.fixture
def halves(tmp_path):
    """Gives a night by its shards: A is in the first, B and C in the second."""

    def night(day: int, tests, *delivered: int, **fields) -> NightSummary:
        store = FolderStore(tmp_path / f"{day}-{len(list(tmp_path.iterdir()))}")
        shards = shards_of(run_of(day, tests, **fields), [A], [B, C])
        keys = [store_run(store, shards[index - 1]) for index in delivered]
        return summarise(load_run(store, keys[0].rpartition("/")[0]))

    return night


def judge(tonight, history, alerts=()):
    return detect(tonight, history, POLICY, masks=masks(alerts), weights=equal_weights)


def told(alerts, report):
    return apply_report(alerts, report, now=report.tonight.started + timedelta(days=3))


def state(report, test):
    return next(row.state for row in report.rows if row.test == test)


def steady(days):
    return [summarise(run_of(day, GOOD)) for day in days]


def test_a_missing_shard_is_named_and_its_tests_neither_fail_nor_are_gone(halves):
    report = judge(halves(7, GOOD, 1), steady(range(7)))
    assert report.verdict == "broken"
    assert report.reason == "shard 2/2 is missing, 2 of 3 tests; 1 compared, none slower"
    assert state(report, A) is State.UNCHANGED
    for test in (B, C):
        row = next(row for row in report.rows if row.test == test)
        assert row.state is State.NOT_COMPARABLE
        assert row.reason == "not delivered: shard 2/2 is missing"
    assert told((), report) == ()


def test_what_is_slower_in_the_shard_that_came_is_reported_although_the_other_is_missing(halves):
    report = judge(halves(7, {**GOOD, A: 1.5}, 1), steady(range(7)))
    assert report.verdict == "regression"
    assert "slower by over 7%: " in report.reason
    assert report.reason.endswith("shard 2/2 is missing, 2 of 3 tests")
    (alert,) = told((), report)
    assert alert.tests == (A,)


def test_a_shard_file_on_its_own_is_judged_as_a_part():
    first, _ = shards_of(run_of(7, GOOD), [A], [B, C])
    report = judge(summarise(first), steady(range(7)))
    assert report.reason == "shard 2/2 is missing, 2 of 3 tests; 1 compared, none slower"
    assert {row.state for row in report.rows} == {State.UNCHANGED, State.NOT_COMPARABLE}


def test_the_night_after_a_missing_shard_compares_with_the_nights_before_it(halves):
    history = [*steady(range(7)), halves(7, {**GOOD, A: 1.01}, 1)]
    report = judge(summarise(run_of(8, {**GOOD, B: 1.5})), history)
    assert [state(report, test) for test in (A, B, C)] == [State.UNCHANGED, State.SLOWER, State.UNCHANGED]
    failing = judge(summarise(run_of(8, {**GOOD, B: Status.CRASH})), history)
    assert state(failing, B) is State.NEWLY_FAILING, "it was ok when it was last heard of"


def test_a_test_that_only_a_missing_shard_has_ever_planned_is_new(halves):
    only = [halves(day, GOOD, 1) for day in range(3)]
    report = judge(summarise(run_of(3, GOOD)), only)
    assert [state(report, test) for test in (B, C)] == [State.NEW, State.NEW]


def test_a_shard_that_comes_a_day_late_is_judged_against_the_nights_before_its_own(halves):
    history = steady(range(7))
    alerts = told((), judge(halves(7, {**GOOD, B: 1.5}, 1), history))
    assert alerts == ()
    newer = judge(summarise(run_of(8, {**GOOD, B: 1.5})), [*history, halves(7, GOOD, 1)])
    (alert,) = told(alerts, newer)
    late = judge(halves(7, {**GOOD, B: 1.5}, 1, 2), history, (alert,))
    assert late.verdict == "regression"
    (after,) = told((alert,), late)
    assert after.key == alert.key, "the same change: no second issue"
    assert [night.run for night in after.nights] == ["r0007", "r0008"]
    assert after.opened == late.tonight.started
    assert told((after,), late) == (after,)


def test_a_late_shard_adds_its_tests_to_the_alert_that_its_night_has(halves):
    history = steady(range(7))
    slow = {**GOOD, A: 1.5, B: 1.4}
    (alert,) = told((), judge(halves(7, slow, 1), history))
    (after,) = told((alert,), judge(halves(7, slow, 1, 2), history, (alert,)))
    assert set(after.tests) == {A, B}
    assert after.nights[0].findings == {A: "+50.0%", B: "+40.0%"}
    assert after.nights[0].note == "opened"


def test_a_late_shard_does_not_open_an_alert_again_that_newer_nights_have_closed(halves):
    history = steady(range(7))
    alerts: tuple[Alert, ...] = ()
    for day, tests in ((7, {**GOOD, A: 1.5}), (9, GOOD), (10, GOOD), (11, GOOD)):
        night = summarise(run_of(day, tests))
        alerts = told(alerts, judge(night, history, alerts))
        history.append(night)
    assert not alerts[0].is_open
    late = judge(halves(8, {**GOOD, A: 1.5}, 1, 2), history[:8], alerts)
    (after,) = told(alerts, late)
    assert not after.is_open
    assert [night.started.day for night in after.nights] == [8, 9, 10, 11, 12]


def test_what_a_late_shard_finds_stays_known_when_the_alert_of_its_night_is_closed(halves):
    history = steady(range(7))
    slow = {**GOOD, A: 1.5, B: 1.4}
    alerts = told((), judge(halves(7, slow, 1), history))
    for day in (8, 9, 10):
        alerts = told(alerts, judge(summarise(run_of(day, GOOD)), history, alerts))
    assert not alerts[0].is_open
    (after,) = told(alerts, judge(halves(7, slow, 1, 2), history, alerts))
    assert not after.is_open
    assert after.nights[0].findings == {A: "+50.0%", B: "+40.0%"}
    assert B in masks((after,)), "so that its slow night is no baseline"


def test_a_workload_that_changes_while_its_shard_is_missing_is_told_when_it_comes_and_closes_its_alert(halves):
    history = steady(range(7))
    alerts = told((), judge(summarise(run_of(7, {**GOOD, B: 1.5})), history))
    history.append(halves(8, GOOD, 1, workloads={B: "w2"}))
    tonight = summarise(run_of(9, {**GOOD, B: 3.0}, workloads={B: "w2"}))
    report = judge(tonight, history, alerts)
    assert state(report, B) is State.WORKLOAD_CHANGE
    (after,) = told(alerts, report)
    assert not after.is_open and "workload change" in after.closed_because


def test_an_alert_on_tests_of_a_missing_shard_waits(halves):
    history = steady(range(7))
    (alert,) = told((), judge(summarise(run_of(7, {**GOOD, B: 1.5})), history))
    (after,) = told((alert,), judge(halves(8, GOOD, 1), history, (alert,)))
    assert after == alert, "neither recovered nor slower: nothing is known of it"


def test_a_shard_that_ended_early_has_tests_without_a_record():
    run = run_of(7, GOOD)
    _, second = shards_of(run, [A], [B, C])
    cut = dataclasses.replace(second, records=second.records[:1])
    assert cut.missing == [C]


def test_a_noisy_test_of_a_late_shard_moves_no_alert_back_over_nights_that_were_good(halves):
    history = [*steady(range(7)), halves(7, {**GOOD, B: 1.2}, 1)]
    history += [summarise(run_of(day, GOOD)) for day in (8, 9)]
    opening = judge(summarise(run_of(10, {**GOOD, B: 1.5})), history)
    (alert,) = told((), opening)
    late = judge(halves(7, {**GOOD, B: 1.2}, 1, 2), history[:7], (alert,))
    assert late.verdict == "regression"
    (after,) = told((alert,), late)
    assert after.opened == alert.opened == opening.tonight.started
    assert [night.run for night in after.nights] == ["r0007", "r0010"]
    held = [night.run for night in history if any(mask.holds(night.started) for mask in masks((after,))[B])]
    assert held == ["r0007"], "the noisy night itself is no baseline, the good ones after it are"
