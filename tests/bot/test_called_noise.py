"""What a person has called noise must go further to be called again, by the limits and by pairs, for thirty days."""

from datetime import timedelta

import pytest
from night_factory import FIRST_NIGHT, A, B, equal_weights, night_of
from scripted_bench import Scripted, values
from scripted_nights import CRASH3, OK3, Class
from test_accepting import WHERE, at, keep
from test_alerts import GOOD, POLICY, Diary

from baselines.confirming.stored_state import read_state
from baselines.report import State
from baselines.store import open_store
from bot.github.alert import masks
from bot.github.alert_store import read_alerts
from bot.github.alerts import apply_report
from bot.triage.calling_noise import call_noise, noisy_tests
from regression_detector import detect
from torchbenchmark.records import Status


class NoisyDiary(Diary):
    """Nights of the limits that know what was called noise."""

    def night(self, day, tests, **fields):
        tonight = night_of(day, {**GOOD, **tests}, **fields)
        noisy = noisy_tests(self.alerts, tonight.started)
        known = {"masks": masks(self.alerts, tonight.started), "weights": equal_weights, "noisy": noisy}
        report = detect(tonight, self.history, POLICY, **known)
        self.alerts = apply_report(self.alerts, report, now=tonight.started)
        self.history.append(tonight)
        return report

    def call_noise(self, tmp_path, day):
        store = open_store(str(tmp_path))
        keep(store, self.alerts)
        call_noise(store, *WHERE, next(one.key for one in self.alerts if one.is_open), by="ada", now=at(day))
        self.alerts = read_alerts(store, *WHERE)


def state(report, test):
    return next(row.state for row in report.rows if row.test == test)


def test_the_limits_count_from_what_was_called_noise_and_only_for_that_test(tmp_path):
    diary = NoisyDiary()
    diary.nights(range(7))
    diary.night(7, {A: 1.2})
    diary.call_noise(tmp_path, 7.5)
    report = diary.night(8, {A: 1.2})
    assert state(report, A) is State.UNCHANGED and report.verdict == "clean", "nor does it move the total"
    report = diary.night(9, {A: 1.27, B: 1.2})
    assert state(report, A) is State.UNCHANGED and state(report, B) is State.SLOWER
    assert report.flat.reason.startswith("slower by over 7%") and A in report.flat.reason, (
        "the seed rule knows no noise"
    )
    report = diary.night(10, {A: 1.3})
    assert state(report, A) is State.SLOWER and report.noisy[A].until == at(37.5)
    report = diary.night(38, {A: 1.2})
    assert report.noisy == {} and state(report, A) is State.SLOWER


def test_a_total_that_was_called_noise_must_lose_more(tmp_path):
    diary = NoisyDiary()
    diary.nights(range(7))
    diary.night(7, dict.fromkeys(GOOD, 1.04))
    diary.call_noise(tmp_path, 7.5)
    assert diary.night(8, dict.fromkeys(GOOD, 1.04)).verdict == "clean"
    assert diary.night(9, dict.fromkeys(GOOD, 1.06)).verdict == "regression"


def test_a_test_that_was_called_flaky_is_filed_when_it_has_failed_for_three_nights(tmp_path):
    diary = NoisyDiary()
    diary.nights(range(7))
    diary.night(7, {A: Status.CRASH})
    diary.call_noise(tmp_path, 7.5)
    assert diary.night(8, {}).verdict == "clean"
    verdicts = [diary.night(day, {A: Status.CRASH}).verdict for day in (9, 10)]
    assert verdicts == ["clean", "clean"] and not any(alert.is_open for alert in diary.alerts)
    diary.night(11, {A: Status.CRASH})
    assert [alert.tests for alert in diary.alerts if alert.is_open] == [(A,)]


@pytest.fixture
def called(tmp_path):
    """A class of twenty good nights and four slow ones, +20 %, of which the second opened an alert, called noise."""
    these = Class(tmp_path)
    for day in range(20):
        these.night({A: values(1.0, day)}, Scripted({}))
    for day in range(20, 24):
        these.night({A: values(1.2, day)}, Scripted({A: 0.18}))
    keep(these.store, these.alerts)
    (alert,) = these.alerts
    call_noise(these.store, *WHERE, alert.key, by="ada", now=at(24) - timedelta(hours=1))
    these.alerts = read_alerts(these.store, *WHERE)
    return these


def test_pairs_are_not_asked_about_what_was_called_noise_and_it_opens_nothing(called):
    for day in range(24, 34):
        bench = Scripted({A: 0.18 if day % 3 else 0.0})
        report = called.night({A: values(1.2 if day % 3 else 1.0, day)}, bench)
        assert report.verdict == "clean", day
        assert A not in {test for asked in bench.asked for test, base, head in asked if base != head}, day
    assert [alert.is_open for alert in called.alerts] == [False]
    known, _ = read_state(called.store, *WHERE)
    assert known.noisy[A].width == pytest.approx(0.2, abs=0.02)


def test_a_step_beyond_what_was_called_noise_is_confirmed_and_filed(called):
    for day in range(24, 30):
        called.night({A: values(1.0, day)}, Scripted({}))
    for day in (30, 31):
        called.night({A: values(1.6, day)}, Scripted({A: 0.47}))
    assert [(alert.is_open, alert.tests) for alert in called.alerts] == [(False, (A,)), (True, (A,))]


def test_pairs_that_show_no_more_than_the_noise_confirm_nothing_though_the_night_was_far_off(called):
    for day in range(24, 30):
        called.night({A: values(1.0, day)}, Scripted({}))
    bench = Scripted({A: 0.15})
    for day in (30, 31):
        called.night({A: values(1.6, day)}, bench)
    assert A in {test for asked in bench.asked for test, _, _ in asked}, "asked, as it went further than that"
    assert [alert.is_open for alert in called.alerts] == [False]


def test_a_flaky_test_is_asked_each_night_and_filed_after_the_third(tmp_path):
    these = Class(tmp_path)
    for _ in range(20):
        these.night({A: [1.0, 1.001, 0.999]}, Scripted({}))
    these.night({A: Status.CRASH}, Scripted({}, ends={"20": CRASH3, "19": OK3}))
    keep(these.store, these.alerts)
    (alert,) = these.alerts
    call_noise(these.store, *WHERE, alert.key, by="ada", now=at(21) - timedelta(hours=1))
    these.alerts = read_alerts(these.store, *WHERE)
    these.night({A: [1.0, 1.001, 0.999]}, Scripted({}, ends={"21": OK3, "20": CRASH3}))
    verdicts = []
    for day in (22, 23, 24):
        bench = Scripted({}, ends={str(day): CRASH3, "21": OK3, "23": CRASH3, "22": CRASH3, "24": CRASH3})
        verdicts.append(these.night({A: Status.CRASH}, bench).verdict)
    assert verdicts == ["clean", "clean", "regression"]
    assert [(one.is_open, one.tests) for one in these.alerts] == [(False, (A,)), (True, (A,))]
    assert these.alerts[1].opened == FIRST_NIGHT + timedelta(days=24)
