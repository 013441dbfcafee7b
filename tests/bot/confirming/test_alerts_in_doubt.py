"""A night that finds a test of an open alert slower, and not by what was confirmed: pairs say whether the build is."""

import math

import pytest
import scripted_nights
from night_factory import FIRST_NIGHT, UNITS, A, B, run_of
from scripted_bench import OTHERS, Scripted, values
from scripted_nights import POLICY, Class

from baselines.confirming.rules import Rules
from baselines.confirming.stored_state import read_state
from bot.confirming.closing import MOST_DOUBTED
from bot.confirming.report import still_slow
from bot.pages.job_summary import render_summary

DOUBLED = math.log(2)
EDGE = math.log1p(POLICY.per_test)  # pairs about the limit, which do not tell


class ByBuild(Scripted):
    """A machine on which the head of a pair is slower by what `effects` says of the build that it is held against."""

    def pairs(self, wanted, rounds, decided, runner=0):
        (base,) = {one.base for one in wanted}
        inner = Scripted({one.test: self.effects[base] for one in wanted})
        self.asked.append([(one.test, one.base, one.head) for one in wanted])
        return inner.pairs(wanted, rounds, decided, runner)


class ByChannel(Scripted):
    """A machine on which it is slower by what `effects` says of the channel of a test."""

    def pairs(self, wanted, rounds, decided, runner=0):
        self.asked.append([(one.test, one.base, one.head) for one in wanted])
        every = {}
        for channel in ("gpu_time", "latency"):
            inner = Scripted({one.test: self.effects.get((one.test, channel), 0.0) for one in wanted})
            every[channel] = inner.pairs(wanted, rounds, lambda found: (), runner)
        return [
            [{channel: every[channel][index][pair]["cpu_time"] for channel in every} for pair in range(rounds)]
            for index in range(len(wanted))
        ]


def with_alert(these, level=2.0, tests=(A,), good=3, slow=2):
    """Good nights, and slow ones that open an alert."""
    for _ in range(good):
        these.night({test: values(1.0, these.day) for test in tests}, Scripted({}))
    for _ in range(slow):
        slower = {test: values(level, these.day) for test in tests}
        these.night(slower, Scripted(dict.fromkeys(tests, math.log(level))), closing=Scripted({}))
    (alert,) = these.alerts
    assert alert.is_open and set(alert.tests) == set(tests)
    return these


@pytest.fixture
def doubled(tmp_path):
    """A class with an alert of A, +100 %, in its third slow night."""
    return with_alert(Class(tmp_path))


def night_of(these, level, closing, tests=(A,), **others):
    """The report as it is told, with a night in which the tests take so many times as long."""
    report = these.night({test: values(level, these.day) for test in tests}, Scripted({}), closing=closing, **others)
    return still_slow(report, these.alerts)


def test_one_nights_figure_far_from_what_was_confirmed_is_the_machines_if_pairs_say_so(doubled):
    machine = Scripted({})
    report = night_of(doubled, 1.3, machine)
    (alert,) = doubled.alerts
    assert machine.asked == [[(A, "build0002", "build0005")]]
    assert (report.verdict, report.exit_code) == ("clean", 0)
    assert report.reason.endswith(f"slower by the limits, and not by pairs of the build from before: {A}")
    told = "slower by the figures, but not by 6 pairs: neither a slow night nor a good one"
    assert (alert.nights[-1].note, alert.nights[-1].findings) == (told, {})
    assert report.confirmation.processes == 2 * 6
    summary = render_summary(report, None, "", [])
    assert f"`asked in doubt: {A} cpu_time against the build of 2026-03-03 02:00: gone, " in summary


def test_what_pairs_still_show_of_it_is_still_slower_by_what_they_show(doubled):
    report = night_of(doubled, 1.3, Scripted({A: math.log(1.25)}))
    (alert,) = doubled.alerts
    assert (report.verdict, report.exit_code) == ("regression", 1) and "still slower" in report.reason
    assert alert.nights[-1].findings == {A: "+25.1%"} and alert.recovered_nights == 0


@pytest.mark.parametrize(
    ("machine", "rules", "asked"),
    [
        (Scripted({A: EDGE}), None, True),
        (Scripted({}, gone=("build0002",)), None, False),
        (Scripted({}), Rules(pairs_a_night=0), False),
    ],
    ids=["pairs do not tell", "the build cannot be had", "the pairs are spent"],
)
def test_where_pairs_say_nothing_the_figures_stand(doubled, machine, rules, asked):
    machine.asked.clear()
    doubled.closing_rules = rules
    report = night_of(doubled, 1.3, machine)
    assert bool(machine.asked) == asked and report.verdict == "regression"
    assert doubled.alerts[0].nights[-1].findings == {A: "+29.8%"}


def test_where_the_night_from_before_is_not_known_any_more_the_figures_stand(doubled, monkeypatch):
    monkeypatch.setattr("bot.confirming.closing.WINDOW", 2)
    assert night_of(doubled, 1.3, machine := Scripted({})).verdict == "regression" and machine.asked == []


def test_what_pairs_never_tell_of_is_never_a_clean_night(doubled):
    assert {night_of(doubled, 1.075, Scripted({A: EDGE})).exit_code for _ in range(6)} == {1}


def test_the_build_from_before_the_change_is_not_slower_than_itself_whatever_the_machine_did(doubled):
    doubled.closing_rules = Rules(pairs_a_night=0)  # it needs none
    report = night_of(doubled, 2.0, machine := Scripted({A: DOUBLED}), build="build0002")
    assert machine.asked == [] and report.verdict == "clean"
    assert "tonight's build is that from before it" in doubled.alerts[0].nights[-1].note


def test_what_is_slower_by_what_was_confirmed_is_not_asked_again(doubled):
    assert night_of(doubled, 2.0, machine := Scripted({})).verdict == "regression" and machine.asked == []


def test_half_of_a_change_is_half_of_its_logarithm_by_figures_as_by_pairs(doubled):
    half = math.sqrt(2) - 1
    for share, asked in ((1.02, False), (0.98, True)):
        night_of(doubled, 1 + half * share, machine := Scripted({}))
        assert bool(machine.asked) == asked


def test_figures_that_were_the_machines_are_not_what_is_normal_once_the_alert_is_closed(doubled):
    for _ in range(2):
        night_of(doubled, 1.0, Scripted({}))
    for _ in range(6):
        night_of(doubled, 1.3, Scripted({}))
    assert doubled.alerts[0].recovered_nights == 0, "three good nights in a row"
    for _ in range(3):
        night_of(doubled, 1.0, Scripted({}))
    (alert,) = doubled.alerts
    assert not alert.is_open and "and gone by 6 pairs" in alert.closed_because
    report = night_of(doubled, 1.0, Scripted({}))
    (row,) = [row for row in report.rows if row.test == A]
    assert row.baseline == pytest.approx(1.0, rel=0.01)


def test_a_night_in_doubt_that_is_concluded_again_asks_nothing_again(doubled):
    before = doubled.alerts
    report = night_of(doubled, 1.3, Scripted({}))
    doubled.day, doubled.alerts = doubled.day - 1, before
    again = night_of(doubled, 1.3, machine := Scripted({A: DOUBLED}))
    assert machine.asked == [] and again == report


def test_a_night_that_newer_ones_have_overtaken_asks_nothing(doubled):
    doubled.day = 6
    night_of(doubled, 2.0, Scripted({}))
    doubled.day = 5
    night_of(doubled, 1.3, machine := Scripted({}))
    assert machine.asked == []


def test_a_step_on_a_step_is_held_against_the_build_from_before_both(tmp_path):
    """+30 %, and then doubled; only the second step is undone. The build between has the first one."""
    these = with_alert(Class(tmp_path), 1.3, good=15, slow=4)
    for _ in range(3):
        these.night({A: values(2.6, these.day)}, Scripted({A: DOUBLED}), closing=Scripted({}))
    (alert,) = these.alerts
    (interval,) = alert.intervals
    assert interval.base > alert.opened
    assert night_of(these, 1.3, machine := Scripted({})).verdict == "regression" and machine.asked == []
    between = f"build{(interval.base - FIRST_NIGHT).days:04}"
    assert night_of(these, 1.3, Scripted({}), build=between).verdict == "regression"


def test_an_alert_of_two_steps_is_not_closed_while_the_first_is_there(tmp_path):
    these = with_alert(Class(tmp_path), 1.2, good=15, slow=4)
    for _ in range(3):
        these.night({A: values(2.4, these.day)}, Scripted({A: DOUBLED}), closing=Scripted({}))
    (alert,) = these.alerts
    before = f"build{(alert.good_until - FIRST_NIGHT).days:04}"
    for level in (1.05, 1.05, 1.05):  # a lucky machine: it is 1.2
        night_of(these, level, machine := ByBuild({before: math.log(1.2)}))
    assert machine.asked == [[(A, before, f"build{these.day - 1:04}")]]
    assert these.alerts[0].is_open and "still there by pairs" in these.alerts[0].nights[-1].note


def test_pairs_are_asked_of_every_channel_that_was_confirmed(tmp_path, monkeypatch):
    """The kernels take twice, the host four times as long; then the host is mended, and the kernels are in part."""
    units = {**UNITS, "gpu_time": "s"}
    monkeypatch.setattr(scripted_nights, "run_of", lambda day, tests: run_of(day, tests, device="cuda", units=units))
    these = Class(tmp_path)

    def night(gpu, host, bench, closing=None):
        times = {A: {"gpu_time": values(gpu, these.day), "latency": values(host, these.day)}}
        flat = {channel: values(1.0, these.day) for channel in ("gpu_time", "latency")}
        return still_slow(these.night({**dict.fromkeys(OTHERS, flat), **times}, bench, closing=closing), these.alerts)

    slow = ByChannel({(A, "gpu_time"): DOUBLED, (A, "latency"): math.log(4)})
    mended = ByChannel({(A, "latency"): -math.log(4)})  # against the slow build
    for _ in range(15):
        night(1.0, 1.0, slow)
    for _ in range(2):
        night(2.0, 4.0, slow, ByChannel({}))
    assert {one.channel for one in these.alerts[0].intervals} == {"gpu_time", "latency"}
    there = ByChannel({})
    assert night(2.0, 1.0, mended, there).verdict == "regression" and there.asked == [], "all that was confirmed"
    part = ByChannel({(A, "gpu_time"): math.log(1.2)})
    assert night(1.3, 1.0, mended, part).verdict == "regression" and len(part.asked) == 1
    assert these.alerts[0].nights[-1].findings[A].startswith("+20.")


def test_alerts_in_doubt_leave_pairs_to_what_is_new_and_to_alerts_that_are_to_be_closed(tmp_path):
    tests = [f"test_eval[s{number}-cpu-eager]" for number in range(6)]
    these = Class(tmp_path)
    others = {f"test_eval[o{number}-cpu-eager]": [1.0, 1.001, 0.999] for number in range(24)}
    night = these.night
    these.night = lambda times, *rest, **options: night({**others, **times}, *rest, **options)
    with_alert(these, tests=tests)
    for _ in range(8):
        night_of(these, 1.2, machine := Scripted(dict.fromkeys(tests, EDGE)), tests=tests)
        assert sum(map(len, machine.asked)) == MOST_DOUBTED
        assert read_state(these.store, "smoke", "cpu-4t")[0].bucket > 150
    new = Scripted({B: DOUBLED})
    times = {**{test: values(1.2, these.day) for test in tests}, B: values(2.0, these.day)}
    for _ in range(2):
        these.night({**times, B: values(1.0, these.day)}, Scripted({}), closing=Scripted({}))
    report = these.night(times, new, closing=Scripted(dict.fromkeys(tests, EDGE)))
    assert [(one.test, one.verdict) for one in report.confirmation.tried] == [(B, "confirmed")]


def test_what_is_of_another_workload_is_not_in_doubt(tmp_path, monkeypatch):
    """The workload of A changes while the alert is open for B too, and has a noisy night."""
    these, workloads = Class(tmp_path), {}
    monkeypatch.setattr(scripted_nights, "run_of", lambda day, tests: run_of(day, tests, workloads=dict(workloads)))
    with_alert(these, tests=(A, B))
    workloads[A] = "w2"
    for level in (5.0, 5.0, 5.0, 6.5):
        machine = Scripted({B: EDGE})
        times = {A: values(level, these.day), B: values(1.3, these.day)}
        report = still_slow(these.night(times, Scripted({}), closing=machine), these.alerts)
        assert A not in report.reason and [test for ((test, *_),) in machine.asked] == [B]
