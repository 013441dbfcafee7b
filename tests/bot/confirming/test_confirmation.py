"""The confirming step of a night on a store, with a scripted bench in the place of a machine."""

import math

import pytest
from night_factory import A, B, C
from scripted_bench import Scripted, values
from scripted_nights import CRASH3, OK3, Class

from baselines.confirming.rules import Rules
from baselines.confirming.stored_state import read_state
from baselines.report import State
from bot.confirming.closing import MOST_TESTS
from bot.confirming.report import still_slow, with_confirmation
from bot.pages.issue import render_evidence
from torchbenchmark.records import Status


@pytest.mark.parametrize("nights", [1, 2, 3, 8])
def test_a_young_class_confirms_what_the_limits_call_and_files_it_the_night_after(tmp_path, nights):
    these = Class(tmp_path)
    for day in range(nights):
        report = these.night({A: values(1.0, day), B: values(1.0, day)}, Scripted({}))
        assert report.confirmation.tried == () and report.exit_code == 0
    bench = Scripted({A: 0.18})
    first = these.night({A: values(1.2, 90), B: values(1.0, 90)}, bench)
    assert [(one.test, one.verdict) for one in first.confirmation.tried] == [(A, "confirmed")]
    assert (first.verdict, first.reason) == ("regression", f"confirmed slower: {A}")
    assert these.alerts == (), "one night is not enough"
    second = these.night({A: values(1.2, 91), B: values(1.0, 91)}, bench)
    assert second.baseline.build == f"build{nights - 1:04}", "the night that confirmed it is no good one"
    (filed,) = second.confirmation.filed
    assert (filed.kind, list(filed.effects())) == ("regression", [A])
    (alert,) = these.alerts
    assert alert.tests == (A,) and alert.is_open and alert.effects[A] == pytest.approx(math.expm1(0.18), abs=0.01)
    (interval,) = alert.intervals
    assert interval.low < math.expm1(0.18) < interval.high
    assert alert.opened == first.tonight.started, "slow since the night that confirmed it"
    assert bench.asked[-1] == [(A, f"build{nights - 1:04}", f"build{nights + 1:04}")], "against the last good build"


def test_what_pairs_do_not_show_is_not_filed_however_slow_the_night_was(tmp_path):
    these = Class(tmp_path)
    for day in range(3):
        these.night({A: values(1.0, day)}, Scripted({}))
    reasons = []
    for day in range(3, 6):
        report = these.night({A: values(1.5, day)}, Scripted({}))
        assert report.exit_code == 0 and report.flat.verdict == "regression"
        reasons.append(report.reason)
    rests = f"nothing measured again; suspected still, and resting as pairs did not show it lately: {A}"
    assert reasons == ["1 suspect measured again, none confirmed", rests, rests], "what was seen is told every night"
    beyond = report.confirmation.model_copy(update={"not_tried": (f"{B} cpu_time",)})
    assert with_confirmation(report, beyond).reason == rests.replace(
        "; ", f"; suspected and not measured, as no pairs were left or none ended well: {B}; ", 1
    )
    assert these.alerts == ()
    state, _ = read_state(these.store, "smoke", "cpu-4t")
    assert state.series[f"{A} cpu_time"].futile >= 1


def test_one_build_on_two_nights_has_nothing_to_confirm(tmp_path):
    these = Class(tmp_path)
    these.night({A: values(1.0, 0)}, Scripted({}), build="same")
    report = these.night({A: values(1.5, 1)}, Scripted({A: 0.4}), build="same")
    assert report.confirmation.tried == () and report.verdict == "clean"
    assert report.reason == "nothing to measure again, the build is that of the last good night"


def test_a_build_that_cannot_be_had_any_more_is_not_asked_for(tmp_path):
    these = Class(tmp_path)
    these.night({A: values(1.0, 0)}, Scripted({}))
    bench = Scripted({A: 0.4}, gone=("build0000",))
    report = these.night({A: values(1.5, 1)}, bench)
    assert report.confirmation.tried == () and bench.asked == []
    assert report.exit_code == 1 and report.reason.endswith(f"as no build from before can be had: {A}")
    assert these.alerts == (), "nobody can say whether it is so"


def test_a_night_concluded_again_comes_to_the_same_and_measures_nothing(tmp_path):
    these = Class(tmp_path)
    these.night({A: values(1.0, 0), C: values(1.0, 0)}, Scripted({}))
    report = these.night({A: values(1.5, 1), C: values(1.0, 1)}, Scripted({A: 0.4}))
    these.day -= 1
    again = these.night({A: values(1.5, 1), C: values(1.0, 1)}, None)
    assert again.confirmation == report.confirmation and again.confirmation.confirmed


def test_a_small_change_that_the_limits_do_not_see_is_filed_and_recovers_by_its_own_size(tmp_path):
    these, bench = Class(tmp_path), Scripted({A: 0.03})
    for day in range(20):
        these.night({A: values(1.0, day)}, Scripted({}))
    for day in range(20, 24):
        report = these.night({A: values(1.0305, day)}, bench)
    (alert,) = these.alerts
    assert report.tests(State.SLOWER) == [] and alert.is_open and alert.recovered_nights == 0
    assert alert.nights[-1].findings[A].startswith("+3."), "still as slow as it was confirmed"
    for day in range(24, 27):
        these.night({A: values(1.001, day)}, Scripted({A: -0.03}))
    (alert,) = these.alerts
    assert not alert.is_open and alert.has_recovered


def test_a_slow_night_of_which_no_pair_could_be_measured_is_no_clean_one(tmp_path):
    these = of_two_nights(tmp_path)
    report = these.night({A: values(1.3, 2)}, Scripted({A: math.nan}))
    assert (report.exit_code, report.verdict) == (1, "regression")
    assert report.reason == f"slower by the limits, and no pair of it could be measured: {A}" and these.alerts == ()


def of_two_nights(folder):
    these = Class(folder)
    for day in range(2):
        these.night({A: values(1.0, day)}, Scripted({}))
    return these


def test_a_crash_is_filed_the_night_that_all_its_processes_show_and_none_of_the_build_before(tmp_path):
    these = of_two_nights(tmp_path)
    report = these.night({A: Status.CRASH}, Scripted({}, ends={"02": CRASH3, "01": OK3}))
    assert (report.exit_code, report.reason) == (1, f"newly failing: {A}")
    (alert,) = these.alerts
    assert (alert.kind, alert.tests, alert.is_open) == ("failure", (A,), True)
    body = render_evidence("failure", (A,), report, (), None, "")
    assert (
        f"`newly failing: {A}: confirmed: tonight's build gives 3 x crash, the build of 2026-03-02 02:00 3 x ok`"
        in body
    )
    assert "Not confirmed" not in body
    bench = Scripted({})
    report = these.night({A: Status.CRASH}, bench)
    assert bench.asked == [] and these.alerts[0].nights[-1].findings == {A: "crash: planted crash"}


def test_a_flaky_failure_is_told_and_never_filed_and_asked_again_while_it_fails(tmp_path):
    these = of_two_nights(tmp_path)
    mixed = (Status.CRASH, Status.OK, Status.CRASH)
    report = these.night({A: Status.CRASH}, Scripted({}, ends={"02": mixed}))
    assert report.exit_code == 0 and report.reason.endswith(f"flaky, as fresh processes do not agree: {A}")
    report = these.night({A: Status.CRASH}, Scripted({}, ends={"03": mixed}))
    assert report.tests(State.STILL_FAILING) == [A] and report.exit_code == 0 and these.alerts == ()
    report = these.night({A: Status.CRASH}, Scripted({}, ends={"04": CRASH3, "01": OK3}))
    assert report.exit_code == 1 and [alert.tests for alert in these.alerts] == [(A,)]


def test_what_fails_with_the_build_before_too_is_the_machine_and_no_clean_night(tmp_path):
    these = of_two_nights(tmp_path)
    report = these.night({A: Status.CRASH}, Scripted({}, ends={"02": CRASH3, "01": CRASH3}))
    assert report.reason == f"failing, and with the build from before tonight too: {A}"
    assert report.exit_code == 1 and these.alerts == ()


def test_a_failure_is_filed_although_no_build_from_before_can_be_had(tmp_path):
    these = of_two_nights(tmp_path)
    bench = Scripted({}, gone=("build0000", "build0001"), ends={"02": CRASH3})
    report = these.night({A: Status.CRASH}, bench)
    (one,) = report.confirmation.exact
    assert one.verdict == "without base" and [alert.tests for alert in these.alerts] == [(A,)]


def test_a_test_that_runs_again_and_a_count_that_moved_are_asked_and_told_and_not_filed(tmp_path):
    these = Class(tmp_path)
    for day in range(2):
        these.night({A: {"cpu_time": values(1.0, day), "operators": [10.0] * 3}, B: Status.CRASH}, Scripted({}))
    ends = {"02": (12, 12, 12), "01": (10, 10, 10)}
    bench = Scripted({}, ends=ends)
    report = these.night({A: {"cpu_time": values(1.0, 2), "operators": [12.0] * 3}, B: Status.CRASH}, bench)
    assert [one.sentence for one in report.confirmation.exact] == [
        f"count change: {A} operators: confirmed: tonight's build gives 3 x 12, the build of 2026-03-02 02:00 3 x 10"
    ]
    assert report.exit_code == 0 and these.alerts == ()
    bench = Scripted({}, ends={"03": OK3, "02": CRASH3})
    report = these.night({A: {"cpu_time": values(1.0, 3), "operators": [12.0] * 3}, B: values(1.0, 3)}, bench)
    (one,) = report.confirmation.exact
    assert (one.test, one.kind, one.verdict) == (B, "fixed", "confirmed")
    state, _ = read_state(these.store, "smoke", "cpu-4t")
    assert (state.accounts.exact_asked, state.accounts.exact_confirmed) == (2, 2)


# --- before an alert closes -------------------------------------------------------------------------------------------

OPENED, RECOVERED = 3, 5  # days: the alert of A opens, and its nights are good again


@pytest.fixture
def recovering(tmp_path):
    """A class with an alert of A, +20 %, that had two good nights."""
    these = Class(tmp_path)
    for day in range(OPENED):
        these.night({A: values(1.0, day)}, Scripted({}))
    for day in range(OPENED, RECOVERED):
        these.night({A: values(1.2, day)}, Scripted({A: 0.18}))
    for day in range(RECOVERED, RECOVERED + 2):
        these.night({A: values(1.0, day)}, Scripted({}), closing=Scripted({}))
    (alert,) = these.alerts
    assert alert.is_open and alert.recovered_nights == 2
    return these


def test_an_alert_closes_when_pairs_of_the_build_from_before_do_not_show_its_change_any_more(recovering):
    machine = Scripted({})
    before, _ = read_state(recovering.store, "smoke", "cpu-4t")
    report = recovering.night({A: values(1.0, 7)}, Scripted({}), closing=machine)
    (alert,) = recovering.alerts
    assert machine.asked == [[(A, "build0002", "build0007")]]
    assert not alert.is_open and alert.has_recovered
    assert alert.closed_because == (
        "recovered for 3 nights, and gone by 6 pairs of the build from before it and tonight's"
    )
    assert report.confirmation.processes == 12
    state, _ = read_state(recovering.store, "smoke", "cpu-4t")
    assert state.outcome == report.confirmation
    assert state.bucket == min(Rules().bucket, before.bucket + Rules().pairs_a_night) - 6


def test_what_pairs_still_show_keeps_it_open_for_three_more_nights(recovering):
    report = recovering.night({A: values(1.0, 7)}, Scripted({}), closing=Scripted({A: 0.18}))
    (alert,) = recovering.alerts
    assert alert.is_open and alert.recovered_nights == 0 and alert.recovered_since is None
    assert alert.nights[-1].findings == {A: "+19.8%"} and "still there by pairs" in alert.nights[-1].note
    assert still_slow(report, recovering.alerts).exit_code == 1
    for day in (8, 9):
        recovering.night({A: values(1.0, day)}, Scripted({}), closing=Scripted({A: 0.18}))
        assert recovering.alerts[0].is_open
    recovering.night({A: values(1.0, 10)}, Scripted({}), closing=Scripted({}))
    assert not recovering.alerts[0].is_open


def test_pairs_that_do_not_decide_keep_it_open_too(recovering):
    recovering.night({A: values(1.0, 7)}, Scripted({}), closing=Scripted({A: 0.0902}))  # half of what was confirmed
    (alert,) = recovering.alerts
    assert alert.is_open and "24 pairs did not tell" in alert.nights[-1].note


def test_without_a_build_from_before_it_closes_after_three_nights_and_says_so(recovering):
    machine = Scripted({A: 0.18}, gone=("build0002",))
    recovering.night({A: values(1.0, 7)}, Scripted({}), closing=machine)
    (alert,) = recovering.alerts
    assert machine.asked == [] and not alert.is_open and alert.has_recovered
    assert alert.closed_because.endswith("not confirmed by pairs, as no build from before it could be measured")


def test_a_night_that_is_concluded_again_asks_about_no_alert_again(recovering):
    """Killed when the pairs were measured and stored, and before the alerts were."""
    open_still = recovering.alerts
    report = recovering.night({A: values(1.0, 7)}, Scripted({}), closing=Scripted({}))
    spent, _ = read_state(recovering.store, "smoke", "cpu-4t")
    recovering.day, recovering.alerts = recovering.day - 1, open_still
    again = recovering.night({A: values(1.0, 7)}, None, closing=Scripted({A: 9.0}))
    assert again.confirmation == report.confirmation
    assert not recovering.alerts[0].is_open
    assert read_state(recovering.store, "smoke", "cpu-4t")[0].bucket == spent.bucket


def test_of_a_large_alert_the_tests_that_changed_most_are_asked(recovering):
    (alert,) = recovering.alerts
    effects = {f"test_eval[m{number}-cpu-eager]": 0.1 + 0.01 * number for number in range(6)}
    more = alert.model_copy(
        update={"tests": (*sorted(effects), A), "effects": {**effects, A: 0.2}, "intervals": alert.intervals}
    )
    recovering.alerts, machine = (more,), Scripted({})
    recovering.night({A: values(1.0, 7)}, Scripted({}), closing=machine)
    ((*asked,),) = machine.asked
    assert [test for test, _, _ in asked] == [A, *[f"test_eval[m{number}-cpu-eager]" for number in (5, 4, 3, 2, 1)]]
    assert len(asked) == MOST_TESTS and not recovering.alerts[0].is_open


def test_once_the_nights_pairs_are_spent_the_other_alerts_wait_for_the_next_night(recovering):
    (first,) = recovering.alerts
    others = [first.model_copy(update={"key": f"other{number}"}) for number in range(2)]
    recovering.alerts = (first, *others)
    one_alert_a_night = Rules(pairs_a_night=5)
    tonight = recovering.closed_with(one_alert_a_night)
    assert [len(one.asked) for one in tonight.confirmation.closings] == [1]
    told = [alert.nights[-1].note for alert in recovering.alerts if alert.is_open]
    assert told == ["recovered, night 3 of 3; pairs are asked the next night"] * 2
    recovering.closed_with(one_alert_a_night)
    recovering.closed_with(one_alert_a_night)
    assert not any(alert.is_open for alert in recovering.alerts)
