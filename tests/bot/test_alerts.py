"""The life of an alert, night by night: real detection on made-up nights, and the rules of bot.github.alerts."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from night_factory import FIRST_NIGHT, A, B, C, equal_weights, night_of

from baselines.confirming.state import Interval
from baselines.night_evidence import TOTAL
from baselines.policy import load_policy
from baselines.report import State
from baselines.store import open_store
from bot.errors import BotError
from bot.github.alert import Alert, masks
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.alerts import apply_report
from bot.triage.accepting import nights_of_alerts
from regression_detector import detect
from torchbenchmark.records import Status

POLICY = load_policy("default")
GOOD = {A: 1.0, B: 1.0, C: 1.0}


class Diary:
    """Runs detection and alerts over nights, as the nightly does."""

    def __init__(self) -> None:
        self.history = []
        self.alerts: tuple[Alert, ...] = ()
        self.reports = []
        self.now = FIRST_NIGHT

    def night(self, day: int, tests: Mapping[str, object], *, clock_ahead: bool = False, **fields: object):
        self.now += timedelta(days=1) if clock_ahead else max(timedelta(), FIRST_NIGHT + timedelta(days=day) - self.now)
        tonight = night_of(day, {**GOOD, **tests}, **fields)
        report = detect(tonight, self.history, POLICY, masks=masks(self.alerts), weights=equal_weights)
        self.alerts = apply_report(self.alerts, report, now=self.now)
        self.history.append(tonight)
        self.reports.append(report)
        return report

    def nights(self, days: range, tests: Mapping[str, object] | None = None) -> None:
        for day in days:
            self.night(day, tests or {})


@pytest.fixture
def diary() -> Diary:
    """Seven good nights."""
    diary = Diary()
    diary.nights(range(7))
    return diary


def test_a_quiet_fortnight_makes_no_alert(diary):
    diary.nights(range(7, 14))
    assert diary.alerts == ()


def test_a_slower_test_opens_one_alert_and_later_nights_update_it(diary):
    for day in range(7, 20):
        diary.night(day, {A: 1.5})
    (alert,) = diary.alerts
    assert alert.is_open
    assert alert.tests == (A,)
    assert len(alert.nights) == 13
    assert diary.reports[-1].rows[2].test == A
    assert next(row for row in diary.reports[-1].rows if row.test == A).change == pytest.approx(0.5), (
        "thirteen slow nights did not become the baseline"
    )


def test_three_good_nights_in_a_row_close_it_and_two_do_not(diary):
    diary.night(7, {A: 1.5})
    diary.nights(range(8, 10))
    assert diary.alerts[0].is_open
    assert diary.alerts[0].recovered_nights == 2
    diary.night(10, {A: 1.5})
    assert diary.alerts[0].recovered_nights == 0
    diary.nights(range(11, 14))
    (alert,) = diary.alerts
    assert not alert.is_open
    assert "recovered for 3 nights" in alert.closed_because


def test_slow_nights_stay_out_of_the_baseline_after_the_alert_is_closed(diary):
    diary.nights(range(7, 14), {A: 1.5})
    diary.nights(range(14, 17))
    assert not diary.alerts[0].is_open
    report = diary.night(17, {})
    row = next(row for row in report.rows if row.test == A)
    assert row.state is State.UNCHANGED
    assert row.change == pytest.approx(0.0)


def test_a_relapse_within_thirty_days_opens_the_same_alert_again_and_a_later_one_does_not(diary):
    diary.night(7, {A: 1.5})
    diary.nights(range(8, 11))
    diary.night(20, {A: 1.5})
    (alert,) = diary.alerts
    assert alert.is_open
    assert alert.nights[-1].note == "reopened: it is back"
    diary.nights(range(21, 24))
    diary.night(60, {A: 1.5})
    assert len(diary.alerts) == 2
    assert [one.is_open for one in diary.alerts] == [False, True]


def test_tests_found_slower_within_three_days_are_one_alert_and_later_ones_another(diary):
    diary.night(7, {A: 1.5})
    diary.night(9, {A: 1.5, B: 1.5})
    assert [alert.tests for alert in diary.alerts] == [tuple(sorted((A, B)))]
    diary.night(15, {A: 1.5, B: 1.5, C: 1.5})
    assert [alert.tests for alert in diary.alerts] == [tuple(sorted((A, B))), (C,)]


def test_a_total_that_moves_without_any_test_is_an_alert_of_the_total(diary):
    slow = dict.fromkeys(GOOD, 1.04)
    for day in (7, 8, 9):
        diary.night(day, slow)
    (alert,) = diary.alerts
    assert alert.tests == (TOTAL,)
    assert diary.reports[-1].total.change == pytest.approx(0.04), "its nights are masked for every test"
    diary.nights(range(10, 13))
    assert not diary.alerts[0].is_open


def test_a_newly_failing_test_is_an_alert_of_its_own_kind_until_it_has_run_three_nights(diary):
    diary.night(7, {A: Status.CRASH, B: 1.5})
    assert {alert.kind: alert.tests for alert in diary.alerts} == {"failure": (A,), "regression": (B,)}
    diary.night(8, {A: Status.CRASH, B: 1.5})
    failure = next(alert for alert in diary.alerts if alert.kind == "failure")
    assert len(failure.nights) == 2
    diary.nights(range(9, 12), {B: 1.5})
    failure = next(alert for alert in diary.alerts if alert.kind == "failure")
    assert not failure.is_open


def test_what_failed_before_anybody_watched_is_no_alert():
    diary = Diary()
    diary.nights(range(5), {A: Status.CRASH})
    assert diary.alerts == ()


def test_a_changed_workload_closes_the_alert_with_that_reason(diary):
    diary.night(7, {A: 1.5})
    diary.night(8, {A: 1.5}, workloads={A: "w2"})
    (alert,) = diary.alerts
    assert not alert.is_open
    assert "workload change" in alert.closed_because
    diary.night(9, {A: 1.5}, workloads={A: "w2"})
    assert next(row for row in diary.reports[-1].rows if row.test == A).state is State.UNCHANGED


def test_a_night_in_which_the_slow_test_fails_says_nothing_of_its_speed(diary):
    diary.night(7, {A: 1.5})
    diary.night(8, {A: Status.TIMEOUT})
    regression = next(alert for alert in diary.alerts if alert.kind == "regression")
    assert regression.recovered_nights == 0
    assert regression.is_open


def test_applying_the_same_report_twice_changes_nothing(diary):
    for tests in ({A: 1.5, B: Status.CRASH}, {A: 1.5, B: Status.CRASH, C: 1.5}, {}):
        report = diary.night(7 + len(diary.reports), tests)
        assert apply_report(diary.alerts, report, now=diary.now) == diary.alerts


def test_a_broken_night_touches_no_alert(diary):
    diary.night(7, {A: 1.5})
    before = diary.alerts
    report = diary.night(8, dict.fromkeys(GOOD, Status.CRASH))
    assert report.verdict == "broken"
    assert diary.alerts == before


def test_alerts_are_stored_and_read_again_and_an_unchanged_state_is_not_written(diary, tmp_path):
    diary.night(7, {A: 1.5})
    store = open_store(str(tmp_path / "store"))
    alerts = change_alerts(store, "smoke", "cpu-4t", lambda before: (*before, *diary.alerts))
    assert read_alerts(store, "smoke", "cpu-4t") == alerts == diary.alerts
    content = store.read("alerts/smoke/cpu-4t.json")
    change_alerts(store, "smoke", "cpu-4t", lambda before: before)
    assert store.read("alerts/smoke/cpu-4t.json") == content


def test_damaged_alerts_are_an_error_that_names_the_object(tmp_path):
    store = open_store(str(tmp_path / "store"))
    store.create("alerts/smoke/cpu-4t.json", b'{"kind": "alerts", "schema": 1}')
    with pytest.raises(BotError, match=r"alerts/smoke/cpu-4t\.json: key nonce"):
        read_alerts(store, "smoke", "cpu-4t")


def test_the_last_good_build_is_that_before_the_alert_not_last_nights(diary):
    for day in (7, 8):
        report = diary.night(day, {A: 1.5})
    assert report.baseline.build == "build0006"


def test_a_test_that_still_fails_inside_its_alert_keeps_the_verdict():
    others = {f"test_eval[m{index}-cpu-eager]": 1.0 for index in range(10)}
    diary = Diary()
    diary.nights(range(3), others)
    assert diary.night(3, {**others, A: Status.CRASH}).reason == f"newly failing: {A}"
    report = diary.night(4, {**others, A: Status.CRASH})
    assert report.verdict == "regression"
    assert report.reason == f"still failing: {A}"


def test_a_night_whose_clock_was_ahead_does_not_leave_later_slow_nights_unmasked(diary):
    diary.night(300, {A: 2.0}, clock_ahead=True)
    for day in range(7, 16):
        report = diary.night(day, {A: 2.0})
        assert next(row for row in report.rows if row.test == A).change == pytest.approx(1.0), day
    assert len(diary.alerts) == 1


def test_an_alert_of_the_total_closes_also_where_a_test_has_no_value(diary):
    for day in range(7):
        diary.night(day, {C: Status.SKIPPED})
    diary.night(7, {A: 1.05, B: 1.05, C: Status.SKIPPED})
    assert [alert.tests for alert in diary.alerts] == [(TOTAL,)]
    for day in range(8, 11):
        diary.night(day, {C: Status.SKIPPED})
    assert not diary.alerts[0].is_open


def test_a_test_whose_workload_changed_inside_an_alert_of_two_is_judged_again(diary):
    diary.night(7, {A: 1.5, B: 1.5})
    for day in range(8, 15):
        diary.night(day, {A: 1.5, B: 1.5}, workloads={A: "w2"})
    for day in range(15, 20):
        diary.night(day, {A: 9.0}, workloads={A: "w2"})
        assert diary.reports[-1].verdict == "regression"
        assert next(row for row in diary.reports[-1].rows if row.test == A).change == pytest.approx(5.0)


def test_an_environment_that_changes_on_a_night_when_a_test_fails_hides_nothing_afterwards(diary):
    diary.night(7, {A: 1.5, B: 1.5})
    diary.night(8, {A: Status.ERROR, B: 1.5}, fingerprint="env2")
    for day in range(9, 15):
        diary.night(day, {}, fingerprint="env2")
    assert not any(alert.is_open for alert in diary.alerts if alert.kind == "regression")
    for day in range(15, 25):
        diary.night(day, {A: 9.0, B: 9.0}, fingerprint="env2")
        assert diary.reports[-1].verdict == "regression"


def test_what_is_slow_after_an_environment_change_closed_an_alert_is_a_new_alert_and_stays_one(diary):
    diary.night(7, {A: 1.5})
    for day in range(8, 18):
        diary.night(day, {A: 1.5 if day == 8 else 1.0}, fingerprint="env2")
    for day in range(18, 40):
        diary.night(day, {A: 1.5}, fingerprint="env2")
        assert diary.reports[-1].verdict == "regression"
    assert [alert.is_open for alert in diary.alerts] == [False, True]
    for day in range(40, 43):
        diary.night(day, {}, fingerprint="env2")
    assert not any(alert.is_open for alert in diary.alerts)


def test_a_slow_test_that_the_suite_then_leaves_out_keeps_no_alert_open(diary):
    diary.night(7, {A: 1.5, B: 1.5})
    for day in range(8, 11):
        diary.night(day, {A: Status.SKIPPED})
    assert not diary.alerts[0].is_open and "recovered" in diary.alerts[0].closed_because


def test_an_alert_whose_tests_are_all_left_out_is_closed_with_that_reason(diary):
    diary.night(7, {A: Status.CRASH})
    diary.night(8, {A: Status.CRASH})
    diary.night(9, {A: Status.SKIPPED})
    (alert,) = diary.alerts
    assert not alert.is_open and "left out on purpose" in alert.closed_because


def test_an_alert_of_a_night_whose_clock_was_ahead_closes_after_three_good_nights(diary):
    diary.night(300, {A: 2.0}, clock_ahead=True)
    diary.nights(range(8, 11))
    (alert,) = diary.alerts
    assert not alert.is_open and "recovered" in alert.closed_because
    diary.nights(range(11, 13))
    assert diary.alerts == (alert,)


def test_one_night_on_another_machine_closes_no_alert(diary):
    diary.night(7, {A: 1.5})
    diary.night(8, {A: 1.5}, fingerprint="env2")
    assert diary.alerts[0].is_open
    assert diary.alerts[0].nights[-1].note == "not comparable (environment change), night 1 of 3"
    assert diary.night(9, {A: 1.5}).verdict == "regression"
    (alert,) = diary.alerts
    assert alert.is_open and alert.incomparable_nights == 0


def test_on_machines_that_take_turns_a_regression_is_one_alert_that_closes_when_both_are_well():
    diary = Diary()
    for day in range(30):
        slow = 12 <= day < 20
        report = diary.night(day, {A: 1.5 if slow else 1.0}, fingerprint=f"env{day % 2}")
        assert (report.verdict == "regression") == slow, day
    (alert,) = diary.alerts
    assert not alert.is_open and alert.closed_because == "recovered for 3 nights"


def test_an_environment_that_stays_another_closes_the_alert_on_its_third_night(diary):
    diary.night(7, {A: 1.5})
    for day in range(8, 11):
        assert diary.alerts[0].is_open
        diary.night(day, {A: 1.5}, fingerprint="env2")
    (alert,) = diary.alerts
    assert not alert.is_open and "environment change" in alert.closed_because


def test_after_a_relapse_the_good_nights_before_it_are_the_baseline_again(diary):
    diary.night(7, {A: 1.5})
    for day in range(8, 19):
        diary.night(day, {A: 1.02})
    report = diary.night(19, {A: 1.5})
    assert report.baseline.build == "build0018"
    (alert,) = diary.alerts
    assert alert.opened == report.tonight.started
    assert [episode.since.day for episode in alert.earlier] == [8]
    report = diary.night(20, {A: 1.5})
    assert next(row for row in report.rows if row.test == A).baseline == pytest.approx(1.02)


def test_every_change_of_an_alert_has_a_higher_number_and_no_change_has_none(diary):
    numbers = []
    for day, tests in ((7, {A: 1.5}), (8, {A: 1.5}), (9, {A: Status.CRASH}), (10, {}), (11, {}), (12, {}), (13, {})):
        diary.night(day, tests)
        numbers.append(next(alert for alert in diary.alerts if alert.kind == "regression").revision)
    assert numbers == [1, 2, 2, 3, 4, 5, 5]


def test_the_evidence_is_of_the_newest_night_that_found_something(diary):
    seen = []

    def show(alert):
        seen.append(alert.nights[-1].run)
        return f"evidence of {alert.nights[-1].run}"

    for day, tests in ((7, {A: 1.5}), (8, {A: 1.5}), (9, {}), (10, {})):
        report = diary.night(day, tests)
        before = diary.alerts
        assert apply_report(before, report, now=diary.now, show=show) == before
    slow = detect(night_of(11, {**GOOD, A: 1.5}), diary.history, POLICY, masks=masks(diary.alerts))
    (alert,) = apply_report(diary.alerts, slow, now=diary.now, show=show)
    assert (alert.evidence, seen) == ("evidence of r0011", ["r0011"])
    good = detect(night_of(12, GOOD), diary.history, POLICY, masks=masks((alert,)))
    (after,) = apply_report((alert,), good, now=diary.now, show=show)
    assert after.evidence == "evidence of r0011"


def test_an_open_alert_needs_its_last_good_night_and_what_its_pairs_were_measured_from(diary, tmp_path):
    diary.night(7, {A: 1.5})
    (alert,) = diary.alerts
    base = FIRST_NIGHT + timedelta(days=2)
    interval = Interval(test=A, channel="cpu_time", base=base, head=alert.opened, effect=0.5, low=0.4, high=0.6)
    store = open_store(str(tmp_path))

    def needed(alert):
        change_alerts(store, "smoke", "cpu-4t", lambda before: (alert,))
        return nights_of_alerts(store, "smoke", "cpu-4t")

    assert needed(alert.model_copy(update={"intervals": (interval,)})) == {
        base,
        FIRST_NIGHT + timedelta(days=6),
        alert.opened,
    }
    assert needed(alert.model_copy(update={"closed": alert.opened, "closed_because": "recovered"})) == set()
