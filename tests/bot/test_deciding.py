"""What a person decides about an alert beside accepting it: acknowledged, snoozed, called noise."""

from datetime import timedelta

import pytest
from night_factory import A, B, run_of
from test_accepting import WHERE, at, command, keep
from test_alerts import GOOD, Diary

from baselines.runs import store_run
from baselines.store import open_store
from bot.errors import BotError
from bot.github.alert import masks
from bot.github.alert_state import state_of
from bot.github.alert_store import read_alerts
from bot.github.precision import judged_by_people
from bot.triage.acknowledging import acknowledge
from bot.triage.calling_noise import call_noise, noisy_tests
from bot.triage.snoozing import snooze
from torchbenchmark.records import Status

HOUR = timedelta(hours=1)


@pytest.fixture
def diary():
    """Seven good nights and one in which A is slower and B fails: an alert each."""
    diary = Diary()
    diary.nights(range(7))
    diary.night(7, {A: 1.5, B: Status.CRASH})
    return diary


@pytest.fixture
def store(diary, tmp_path):
    store = open_store(str(tmp_path))
    store_run(store, run_of(0, GOOD))
    keep(store, diary.alerts)
    return store


def key_of(alerts, kind):
    return next(alert.key for alert in alerts if alert.kind == kind)


def test_an_acknowledged_alert_stays_so_until_it_is_back(diary, store):
    key = key_of(diary.alerts, "regression")
    assert state_of(diary.alerts[0], at(8)) == "new"
    alert = acknowledge(store, *WHERE, key, by="ada", why="mine", now=at(8))
    assert state_of(alert, at(8)) == "acknowledged" and alert.is_open
    assert acknowledge(store, *WHERE, key, by="bob", now=at(9)) == alert, "said twice, it is the first's"
    diary.alerts = read_alerts(store, *WHERE)
    diary.nights(range(8, 11))
    assert state_of(next(one for one in diary.alerts if one.key == key), at(11)) == "recovered"
    diary.night(12, {A: 1.5})
    assert state_of(next(one for one in diary.alerts if one.key == key), at(12)) == "relapsed"


def test_a_snoozed_alert_is_so_until_its_time_and_a_later_word_counts(diary, store):
    key = key_of(diary.alerts, "regression")
    alert = snooze(store, *WHERE, key, until=at(15), by="ada", now=at(8))
    assert [state_of(alert, when) for when in (at(14), at(15))] == ["snoozed", "new"]
    assert snooze(store, *WHERE, key, until=at(15), by="bob", now=at(9)) == alert
    longer = snooze(store, *WHERE, key, until=at(20), by="bob", now=at(9))
    assert state_of(longer, at(19)) == "snoozed" and longer.revision == alert.revision + 1
    for until in (at(9), at(9) + timedelta(days=91)):
        with pytest.raises(BotError, match="give a time within the next 90 days"):
            snooze(store, *WHERE, key, until=until, by="ada", now=at(9))
    with pytest.raises(BotError, match="without a zone"):
        snooze(store, *WHERE, key, until=at(10).replace(tzinfo=None), by="ada", now=at(9))


def test_what_was_called_noise_is_closed_and_its_nights_are_what_is_normal(diary, store):
    diary.nights(range(8, 10), {A: 1.4})
    keep(store, diary.alerts)
    key = key_of(diary.alerts, "regression")
    alert = call_noise(store, *WHERE, key, by="ada", why="it | swings", now=at(9) + HOUR)
    assert state_of(alert, at(10)) == "noise" and not alert.is_open and not alert.has_recovered
    assert alert.closed_because == "called noise by ada: `it ¦ swings`"
    assert alert.noise.widths == {A: 0.5} and alert.noise.until == at(39) + HOUR
    assert A not in masks((alert,), at(10)) and A in masks((alert,), at(9)), (
        "a night that goes on is judged as it began"
    )
    assert call_noise(store, *WHERE, key, by="bob", now=at(11)) == alert
    noisy = noisy_tests((alert,), at(10))
    assert noisy[A].width == 0.5 and noisy[A].widened(0.07) == pytest.approx(0.605)
    assert noisy_tests((alert,), at(9)) == noisy_tests((alert,), at(40)) == {}


def test_what_has_recovered_can_still_be_called_noise_and_opens_no_more(diary, store):
    diary.nights(range(8, 11))
    keep(store, diary.alerts)
    key = key_of(diary.alerts, "regression")
    closed = next(one for one in diary.alerts if one.key == key).closed
    alert = call_noise(store, *WHERE, key, by="ada", now=at(11))
    assert alert.closed == closed and state_of(alert, at(11)) == "noise"
    (mask,) = masks((alert,), at(10))[A]
    assert mask.until is not None and not mask.since_open, "as it was when that night began"


@pytest.mark.parametrize("decide", [acknowledge, call_noise])
def test_what_cannot_be_decided_is_told_and_changes_nothing(diary, store, decide):
    before = read_alerts(store, *WHERE)
    with pytest.raises(BotError, match=r"has no alert 'nothing'; open are: [0-9a-f]{16}"):
        decide(store, *WHERE, "nothing", by="ada")
    with pytest.raises(BotError, match="a name of letters"):
        decide(store, *WHERE, before[0].key, by="@ada")
    counts = before[0].model_copy(update={"key": "c" * 16, "kind": "count", "closed": at(8), "closed_because": "told"})
    keep(store, [counts])
    with pytest.raises(BotError, match=r"is closed already: told|there is no noise in that"):
        decide(store, *WHERE, "c" * 16, by="ada")
    assert read_alerts(store, *WHERE) == (counts,)


def test_the_precision_is_what_people_said(diary, store):
    assert judged_by_people(diary.alerts).sentence == "no alert was judged by a person yet"
    acknowledge(store, *WHERE, key_of(diary.alerts, "regression"), by="ada", now=at(8))
    call_noise(store, *WHERE, key_of(diary.alerts, "failure"), by="ada", now=at(8))
    told = judged_by_people(read_alerts(store, *WHERE)).sentence
    assert told == "2 alerts judged by people: 1 called noise, so a precision of 50%"


def test_the_commands_decide_and_the_list_tells_it(diary, store, tmp_path):
    slow, failing = key_of(diary.alerts, "regression"), key_of(diary.alerts, "failure")
    options = ("--store", str(tmp_path))
    done = command("ack", *options, *WHERE, slow, "--by", "ada")
    assert done.exit_code == 0 and "acknowledged by ada" in done.output
    done = command("snooze", *options, *WHERE, slow, "7d", "--by", "ada")
    assert done.exit_code == 0 and "says nothing until" in done.output
    done = command("noise", *options, *WHERE, failing, "--by", "ada", "--why", "a flaky download")
    assert done.exit_code == 0 and "must fail three nights in a row until" in done.output
    listed = " ".join(command("list", *options).output.split())
    assert "snoozed until" in listed and "called noise by ada" in listed and "a precision of 50%" in listed
    wrong = command("snooze", *options, *WHERE, slow, "a while", "--by", "ada")
    assert isinstance(wrong.exception, BotError) and "such as 12h, 7d or 2w" in str(wrong.exception)
