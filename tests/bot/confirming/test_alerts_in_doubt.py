"""A night that finds a test of an open alert slower, and not by what was confirmed: pairs say whether it still is."""

import math

import pytest
from night_factory import A
from scripted_bench import Scripted, values
from scripted_nights import POLICY, Class

from baselines.confirming.rules import Rules
from bot.confirming.report import still_slow

OPENED = 3  # the day on which A is first slower
DOUBLED = math.log(2)
CONFIRMED_BY = 5  # days: the alert of A is open, with twice the time confirmed


@pytest.fixture
def doubled(tmp_path):
    """A class with an alert of A, +100 %."""
    these = Class(tmp_path)
    for day in range(OPENED):
        these.night({A: values(1.0, day)}, Scripted({}))
    for day in range(OPENED, CONFIRMED_BY):
        these.night({A: values(2.0, day)}, Scripted({A: DOUBLED}), closing=Scripted({}))
    (alert,) = these.alerts
    assert alert.is_open and alert.effects[A] == pytest.approx(1, rel=0.01)
    return these


def doubted_night(these, pairs, day=CONFIRMED_BY, **others):
    """A night in which A takes 1.3 times as long: above the limit, and nothing like what was confirmed."""
    machine = Scripted(pairs, **others)
    report = these.night({A: values(1.3, day)}, Scripted({}), closing=machine)
    return still_slow(report, these.alerts), machine


def test_a_test_far_from_what_was_confirmed_is_not_still_slower_by_one_nights_figure(doubled):
    report, machine = doubted_night(doubled, {})
    (alert,) = doubled.alerts
    assert machine.asked == [[(A, "build0002", "build0005")]]
    assert (report.verdict, report.exit_code) == ("clean", 0)
    assert alert.nights[-1].note == "recovered, night 1 of 3" and not alert.nights[-1].findings
    assert report.confirmation.processes == 2 * 6


def test_what_pairs_still_show_of_it_is_still_slower_by_what_they_show(doubled):
    report, _ = doubted_night(doubled, {A: math.log(1.25)})
    (alert,) = doubled.alerts
    assert (report.verdict, report.exit_code) == ("regression", 1) and "still slower" in report.reason
    assert alert.nights[-1].findings == {A: "+25.1%"} and alert.recovered_nights == 0


def test_pairs_that_do_not_tell_are_said_and_are_no_night_of_either_kind(doubled):
    before = doubled.alerts
    report, machine = doubted_night(doubled, {A: math.log1p(POLICY.per_test)})
    assert len(machine.asked) == 1 and doubled.alerts == before
    assert report.verdict == "clean"
    assert report.reason.endswith(f"slower by the limits and less than confirmed, and pairs did not tell: {A}")


def test_where_no_build_from_before_is_left_the_figures_stand(doubled):
    report, machine = doubted_night(doubled, {}, gone=("build0002",))
    assert machine.asked == [] and report.verdict == "regression"
    assert doubled.alerts[0].nights[-1].findings == {A: "+29.8%"}


def test_once_the_nights_pairs_are_spent_an_alert_in_doubt_is_not_told_of(doubled):
    doubled.closing_rules = Rules(pairs_a_night=0)
    report, machine = doubted_night(doubled, {})
    assert machine.asked == [] and report.verdict == "clean" and "pairs did not tell" in report.reason


def test_the_build_from_before_the_change_is_not_slower_than_itself_whatever_the_machine_did(doubled):
    machine = Scripted({A: DOUBLED})
    report = doubled.night({A: values(2.0, 5)}, Scripted({}), build="build0002", closing=machine)
    (alert,) = doubled.alerts
    assert machine.asked == [] and still_slow(report, doubled.alerts).verdict == "clean"
    assert alert.nights[-1].note == "recovered, night 1 of 3"


def test_what_is_still_slower_by_what_was_confirmed_is_not_asked_again(doubled):
    machine = Scripted({})
    report = doubled.night({A: values(2.0, 5)}, Scripted({}), closing=machine)
    assert machine.asked == [] and still_slow(report, doubled.alerts).verdict == "regression"


def test_a_third_good_night_that_was_in_doubt_closes_nothing_and_the_next_one_asks(doubled):
    for day in (5, 6):
        doubled.night({A: values(1.0, day)}, Scripted({}), closing=Scripted({}))
    doubted_night(doubled, {}, day=7)
    (alert,) = doubled.alerts
    assert alert.is_open and alert.nights[-1].note.endswith("pairs are asked the next night")
    doubled.night({A: values(1.0, 8)}, Scripted({}), closing=Scripted({}))
    assert not doubled.alerts[0].is_open


def test_a_night_in_doubt_that_is_concluded_again_asks_nothing_again(doubled):
    before = doubled.alerts
    report, _ = doubted_night(doubled, {})
    doubled.day, doubled.alerts = doubled.day - 1, before
    again, machine = doubted_night(doubled, {A: DOUBLED})
    assert machine.asked == [] and again == report


def test_a_night_that_newer_ones_have_overtaken_asks_nothing_and_finds_nothing(doubled):
    doubled.day = 6
    doubled.night({A: values(2.0, 6)}, Scripted({}), closing=Scripted({}))
    known = doubled.alerts
    doubled.day = 5
    report, machine = doubted_night(doubled, {A: DOUBLED})
    assert machine.asked == [] and doubled.alerts == known and report.verdict == "clean"
