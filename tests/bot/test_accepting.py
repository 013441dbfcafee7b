"""A person accepts the level of an alert: the nights since its onset are normal, and nobody is told of it again."""

import math
from datetime import timedelta

import pytest
from night_factory import FIRST_NIGHT, A, B, equal_weights, night_of, run_of
from scripted_bench import Scripted, values
from scripted_nights import Class
from test_alerts import GOOD, POLICY, Diary
from typer.testing import CliRunner

from baselines.confirming.state import ClassState, Filed, Onset
from baselines.confirming.stored_state import read_state, write_state
from baselines.report import State
from baselines.runs import store_run
from baselines.store import open_store
from bot import alerts_command
from bot.errors import BotError
from bot.github.alert import Alert, masks
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.alerts import apply_report
from bot.triage.accepting import accept_alert, nights_of_alerts
from regression_detector import detect
from torchbenchmark.terminal import new_app

WHERE = ("smoke", "cpu-4t")


def at(day):
    return FIRST_NIGHT + timedelta(days=day)


def keep(store, alerts) -> None:
    change_alerts(store, *WHERE, lambda before: tuple(alerts))


@pytest.fixture
def slow(tmp_path):
    """A class of twenty good nights and four slow ones, +20 %, of which the second opened an alert."""
    these = Class(tmp_path)
    for day in range(20):
        these.night({A: values(1.0, day)}, Scripted({}))
    for day in range(20, 24):
        these.night({A: values(1.2, day)}, Scripted({A: 0.18}))
    (alert,) = these.alerts
    assert alert.is_open
    keep(these.store, these.alerts)
    return these


def accepted(these, **told) -> Alert:
    alert = accept_alert(
        these.store, *WHERE, these.alerts[0].key, by="ada", now=at(these.day) - timedelta(hours=1), **told
    )
    these.alerts = read_alerts(these.store, *WHERE)
    return alert


def test_the_nights_since_the_onset_are_the_level_from_the_next_night_on(slow):
    alert = accepted(slow, why="the new | allocator")
    assert not alert.is_open and not alert.has_recovered and alert.accepted.since == {A: at(20)}
    assert alert.closed_because == "accepted as the new level by ada: `the new ¦ allocator`"
    report = slow.night({A: values(1.2, 24)}, Scripted({}))
    (row,) = [row for row in report.rows if row.test == A]
    assert row.state is State.UNCHANGED and row.nights == 4 and row.baseline == pytest.approx(1.2, rel=0.01)
    assert report.verdict == "clean"
    state, _ = read_state(slow.store, *WHERE)
    one = state.series[f"{A} cpu_time"]
    assert one.segment == at(20) and one.prior == pytest.approx(math.log(1.2), abs=0.02)
    assert state.accepted == [alert.key]


def test_what_gets_slower_than_the_accepted_level_is_confirmed_from_a_build_of_that_level(slow):
    accepted(slow)
    for day in range(24, 28):
        slow.night({A: values(1.2, day)}, Scripted({}))
    bench = Scripted({A: 0.15})
    for day in (28, 29):
        slow.night({A: values(1.4, day)}, bench)
    ((_, base, head),) = bench.asked[0]
    assert head == "build0028" and base in [f"build00{day}" for day in range(20, 28)]
    first, second = slow.alerts
    assert not first.is_open and second.is_open and second.key != first.key


def test_what_recovers_from_the_accepted_level_reopens_nothing(slow):
    alert = accepted(slow)
    for day in range(24, 30):
        slow.night({A: values(1.0, day)}, Scripted({A: -0.18}))
    (after,) = slow.alerts
    assert after == alert


def test_an_acceptance_while_a_night_is_measured_counts_from_the_next_night_on(slow):
    """A night that was killed and goes on must come to the same, whatever was accepted meanwhile."""
    accept_alert(slow.store, *WHERE, slow.alerts[0].key, by="ada", now=at(24) + timedelta(hours=1))
    slow.night({A: values(1.2, 24)}, Scripted({}))
    state, _ = read_state(slow.store, *WHERE)
    assert state.accepted == []
    slow.night({A: values(1.2, 25)}, Scripted({}))
    state, _ = read_state(slow.store, *WHERE)
    assert len(state.accepted) == 1 and state.series[f"{A} cpu_time"].segment == at(20)


def test_a_night_that_goes_on_after_a_kill_is_judged_as_if_it_were_not_accepted_yet(slow):
    before = slow.alerts
    accept_alert(slow.store, *WHERE, before[0].key, by="ada", now=at(24) + timedelta(hours=1))
    after = read_alerts(slow.store, *WHERE)
    assert masks(after, at(24)) == masks(before, at(24))
    (mask,) = masks(after, at(25))[A]
    assert mask.accepted and mask.until == at(20)


def test_a_series_that_was_confirmed_to_change_again_keeps_the_segment_of_that(slow):
    state, version = read_state(slow.store, *WHERE)
    state.series[f"{A} cpu_time"].segment = at(23)  # an improvement, confirmed after the regression was filed
    state.last_night = at(22)
    write_state(slow.store, *WHERE, state, version)
    accepted(slow)
    slow.day = 24
    slow.night({A: values(1.1, 24)}, Scripted({}))
    state, _ = read_state(slow.store, *WHERE)
    assert state.series[f"{A} cpu_time"].segment == at(23)


def test_without_confirmation_an_alert_of_the_limits_is_accepted_from_the_night_that_opened_it(tmp_path):
    diary, store = Diary(), open_store(str(tmp_path))
    diary.nights(range(7))
    diary.nights(range(7, 10), {A: 1.5})
    keep(store, diary.alerts)
    accept_alert(store, *WHERE, diary.alerts[0].key, by="ada", now=at(9))
    diary.alerts = read_alerts(store, *WHERE)
    report = diary.night(10, {A: 1.5})
    assert report.verdict == "clean" and report.baseline.build == "build0009"
    report = diary.night(11, {A: 1.9})
    assert report.verdict == "regression" and len(diary.alerts) == 2


def test_what_is_accepted_while_a_night_is_measured_is_no_new_alert_of_that_night(tmp_path):
    diary, store = Diary(), open_store(str(tmp_path))
    diary.nights(range(7))
    diary.nights(range(7, 10), {A: 1.5})
    keep(store, diary.alerts)
    accept_alert(store, *WHERE, diary.alerts[0].key, by="ada", now=at(10) + timedelta(hours=1))
    tonight = night_of(10, {**GOOD, A: 1.5, B: 1.5})
    alerts = read_alerts(store, *WHERE)
    report = detect(tonight, diary.history, POLICY, masks=masks(alerts, at(10)), weights=equal_weights)
    assert set(report.tests(State.SLOWER)) == {A, B}, "judged by what was normal before"
    old, new = apply_report(alerts, report, now=at(10) + timedelta(hours=2))
    assert old == alerts[0] and new.is_open and new.tests == (B,)


def test_an_accepted_level_is_what_is_normal_inside_a_segment_that_a_workload_began_too():
    diary = Diary()
    diary.nights(range(3))
    for day in range(3, 12):
        diary.night(day, {A: 1.0 if day < 9 else 1.5}, workloads={A: "w2"})
    (alert,) = [alert for alert in diary.alerts if alert.is_open]
    taken = {
        "accepted": {"at": at(11), "by": "ada", "since": {A: at(9)}},
        "closed": at(11),
        "closed_because": "accepted",
    }
    diary.alerts = (Alert.model_validate(alert.model_dump(by_alias=True) | taken),)
    report = diary.night(12, {A: 1.5}, workloads={A: "w2"})
    (row,) = [row for row in report.rows if row.test == A]
    assert row.state is State.UNCHANGED and row.nights == 3
    assert "the time before the level that was accepted from 2026-03-10 on" in map(str, masks(diary.alerts)[A])


def test_accepting_twice_changes_nothing_and_what_cannot_be_accepted_is_told(tmp_path):
    diary, store = Diary(), open_store(str(tmp_path))
    diary.nights(range(7))
    diary.night(7, {A: 1.5})
    keep(store, diary.alerts)
    (alert,) = diary.alerts
    first = accept_alert(store, *WHERE, alert.key, by="ada", now=at(8))
    assert accept_alert(store, *WHERE, alert.key, by="bob", now=at(9)) == first
    failing = alert.model_copy(update={"key": "f" * 16, "kind": "failure"})
    closed = alert.model_copy(update={"key": "c" * 16, "closed": at(8), "closed_because": "recovered for 3 nights"})
    other = alert.model_copy(update={"key": "d" * 16})
    faster = alert.model_copy(update={"key": "e" * 16, "kind": "improvement"})
    keep(store, (failing, closed, other, faster))
    for key, problem in (
        ("e" * 16, "tells of an improvement, and is normal already; nothing to accept"),
        ("f" * 16, "of tests that fail, which have no level"),
        ("c" * 16, "is closed already: recovered for 3 nights"),
        ("nothing", f"no alert 'nothing'; open are: {other.key}"),
    ):
        with pytest.raises(BotError, match=problem):
            accept_alert(store, *WHERE, key, by="ada")
    with pytest.raises(BotError, match="a name of letters"):
        accept_alert(store, *WHERE, other.key, by="ada `|\nx")
    assert read_alerts(store, *WHERE) == (failing, closed, other, faster)


def test_the_night_that_an_acceptance_would_begin_with_is_kept_for_it(tmp_path):
    store, diary = open_store(str(tmp_path)), Diary()
    diary.nights(range(7))
    diary.night(7, {A: 1.5, B: 1.5})
    keep(store, diary.alerts)
    onset = Onset(low=at(3), high=at(5))
    filed = Filed(id="1", kind="regression", night=at(7), onset=onset, series=(f"{A} cpu_time",))
    write_state(store, *WHERE, ClassState(filed=[filed]), None)
    assert nights_of_alerts(store, *WHERE) == {at(5), at(6), at(7)}


def command(*arguments):
    app = new_app("test")
    alerts_command.register(app)
    return CliRunner().invoke(app, ["alerts", *arguments])


def test_the_commands_show_the_open_alerts_and_accept_one(tmp_path):
    store, diary = open_store(str(tmp_path)), Diary()
    store_run(store, run_of(0, GOOD))
    diary.nights(range(7))
    diary.night(7, {A: 1.5})
    keep(store, diary.alerts)
    (alert,) = diary.alerts
    options = ("--store", str(tmp_path))
    assert alert.key in command("list", *options).output
    done = command("accept", *options, *WHERE, alert.key, "--by", "ada", "--why", "a fix of the results")
    assert done.exit_code == 0 and f"{A}: from the night of 2026-03-08 02:00 on" in done.output
    judged = "1 alert judged by people: 0 called noise, so a precision of 100%"
    assert command("list", *options).output == f"no open alert\n{judged}\n"
    assert "accepted as the new level by ada" in " ".join(command("list", "--all", *options).output.split())


def test_who_accepts_is_asked_where_the_machine_knows_no_login(tmp_path, monkeypatch):
    store, diary = open_store(str(tmp_path)), Diary()
    store_run(store, run_of(0, GOOD))
    diary.nights(range(7))
    diary.night(7, {A: 1.5})
    keep(store, diary.alerts)

    def unknown():
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(alerts_command.getpass, "getuser", unknown)
    refused = command("accept", "--store", str(tmp_path), *WHERE, diary.alerts[0].key)
    assert isinstance(refused.exception, BotError) and "say --by NAME" in str(refused.exception)
    for by in ("", " "):
        named = command("accept", "--store", str(tmp_path), *WHERE, diary.alerts[0].key, "--by", by)
        assert isinstance(named.exception, BotError) and "a name of letters" in str(named.exception)
    assert read_alerts(store, *WHERE) == diary.alerts
