"""Which events of an alert people are told of, what is said then, and who is mentioned."""

from datetime import timedelta

import pytest
from night_factory import FIRST_NIGHT, A, B

from bot.alert_issue import issue_of
from bot.config import NightlyConfig
from bot.github.alert import Accepted, Alert, AlertNight, Episode
from bot.github.alert_events import events_of
from bot.github.alert_state import state_of
from bot.github.bisected import Bisected, BisectedChange, SuspectCommit
from bot.github.decisions import Acknowledged, Noise, Snoozed
from bot.github.merging import merge_same_culprits
from bot.owners import owners_of

COMMIT, HOSTILE = "c" * 40, "@everyone <script>"


def at(day):
    return FIRST_NIGHT + timedelta(days=day)


def alert_of(**fields):
    night = AlertNight(run="r0010", started=at(10), build="build0010", findings={A: "+20.0%"}, note="opened")
    known = {"key": "a" * 16, "kind": "regression", "suite": "smoke", "class": "cpu-4t", "opened": at(10)}
    return Alert.model_validate({**known, "tests": (A,), "nights": (night,), **fields})


def verdict(day=12, kind="culprit", commit=COMMIT, paths=()):
    suspect = SuspectCommit(commit=commit, subject=HOSTILE, paths=paths)
    change = BisectedChange(commits=(suspect,), told="+20 %", probability=0.99, certainty="certain")
    return Bisected(at=at(day), episode=0, verdict=kind, good="1" * 40, bad="2" * 40, changes=(change,))


def told(alert, day, **config):
    return [text for _, text in issue_of(alert, NightlyConfig(**config), at(day)).comments]


def whats(alert, day):
    return [event.what for event in events_of(alert, at(day))]


def test_nothing_is_said_of_an_alert_that_goes_on():
    assert told(alert_of(), 20) == [] and whats(alert_of(), 20) == ["filed"]


def test_a_culprit_a_relapse_and_a_recovery_are_said_once_each():
    alert = alert_of(bisected=verdict())
    assert whats(alert, 13) == ["filed", "culprit found"]
    (text,) = told(alert, 13)
    assert text.startswith("**The culprit is** `cccccccccccc` `@everyone <script>`")
    closed = alert.model_copy(update={"closed": at(15), "closed_because": "recovered for 3 nights"})
    assert told(closed, 15)[1].startswith("**Recovered, and closed**: recovered for 3 nights.")
    back = closed.model_copy(
        update={
            "closed": None, "closed_because": "", "opened": at(20), "earlier": (Episode(since=at(10), until=at(13)),)
        }
    )  # fmt: skip
    assert whats(back, 20) == ["filed", "relapsed"], "the culprit was that of the time before"
    assert told(back, 20) == ["**It is back**: since 2026-03-21 1 test of this alert is slower again."]
    keys = [event.key for one in (closed, back) for event in events_of(one, at(20))]
    assert len(set(keys)) == len(keys) - 1, "only that it was filed is the same event"


def test_a_set_of_commits_is_said_too_and_the_environment_is_not():
    assert whats(alert_of(bisected=verdict(kind="set")), 13) == ["filed", "culprit found"]
    assert whats(alert_of(bisected=verdict(kind="environment")), 13) == ["filed"]


def test_what_people_decide_is_not_told_back_to_them():
    accepted = {"at": at(12), "by": "ada", "since": {A: at(10)}}
    closed = {"closed": at(12), "closed_because": "accepted"}
    assert told(alert_of(accepted=Accepted.model_validate(accepted), **closed), 12) == []
    noise = Noise(at=at(12), by="ada", until=at(42), widths={A: 0.2})
    assert told(alert_of(noise=noise, **closed), 12) == []


def test_a_snoozed_alert_says_nothing_and_mentions_nobody_until_its_time():
    snoozed = Snoozed(at=at(11), by="ada", until=at(18), why="on a holiday | @all")
    alert = alert_of(snoozed=snoozed, bisected=verdict())
    issue = issue_of(alert, NightlyConfig(owners=("@team",)), at(13))
    assert (issue.comments, "@team" in issue.body, "alert: snoozed" in issue.labels) == ((), False, True)
    assert "Snoozed by ada until 2026-03-19 02:00 UTC: `on a holiday ¦ @all`." in issue.body
    assert whats(alert, 18) == ["filed", "snooze over"]
    (text,) = told(alert, 18)
    assert text.startswith("**The snooze is over, and it is still there**: 1 test is slower.\n\n**The culprit is**")
    assert "@team" in issue_of(alert, NightlyConfig(owners=("@team",)), at(18)).body
    over = alert.model_copy(update={"closed": at(15), "closed_because": "recovered for 3 nights"})
    assert whats(over, 15) == [] and whats(over, 20) == ["filed"], "gone before anybody had to know"


def test_an_issue_shows_who_looks_after_it_and_its_state():
    alert = alert_of(acknowledged=Acknowledged(at=at(11), by="ada", episode=0))
    issue = issue_of(alert, NightlyConfig(), at(12))
    assert "Acknowledged by ada on 2026-03-12." in issue.body and issue.labels[-1] == "alert: acknowledged"
    assert issue_of(alert_of(), NightlyConfig(), at(12)).labels[-1] == "alert: filed"


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "new"),
        ({"signal": "20260311-1"}, "confirmed"),
        ({"filed": at(10)}, "filed"),
        ({"filed": at(10), "bisected": verdict()}, "culprit found"),
        ({"merged_into": "b" * 16, "closed": at(11), "closed_because": "the same culprit"}, "merged"),
        ({"closed": at(11), "closed_because": "closed: left out on purpose"}, "over"),
        ({"closed": at(11), "closed_because": "recovered for 3 nights"}, "recovered"),
        ({"earlier": (Episode(since=at(1), until=at(2)),), "filed": at(1)}, "relapsed"),
    ],
)
def test_the_state_is_what_is_known(fields, state):
    assert state_of(alert_of(**fields), at(12)) == state


def test_the_pull_request_of_a_culprit_is_told_only_where_that_is_asked_for():
    alert = alert_of(bisected=verdict())
    assert issue_of(alert, NightlyConfig(), at(13)).culprit is None
    asked = NightlyConfig.model_validate({"alerts": {"comment_on_culprit": True}, "owners": ["@team"]})
    commit, text = issue_of(alert, asked, at(13)).culprit
    assert commit == COMMIT and f"- `{A}`" in text and "@team" not in text
    assert "`@everyone <script>`" in text and text.count("@") == 1, "foreign text is in a code span"
    assert issue_of(alert_of(bisected=verdict(kind="set")), asked, at(13)).culprit is None
    snoozed = alert.model_copy(update={"snoozed": Snoozed(at=at(11), by="ada", until=at(18))})
    assert issue_of(snoozed, asked, at(13)).culprit is None


def test_owners_are_those_of_the_models_and_of_the_paths_of_the_culprit():
    owners = {"*": ("@perf",), "resnet*": ("@vision",), "aten/src/*": ("@core", "@vision")}
    assert owners_of(owners, ["resnet50"]) == ("@vision",)
    assert owners_of(owners, ["hf_Bert"], ["aten/src/ATen/native/x.cpp"]) == ("@core", "@vision")
    assert owners_of(owners, ["resnet50"], ["aten/src/x.cpp"]) == ("@vision", "@core")
    assert owners_of(owners, ["dlrm"], ["README.md"]) == ("@perf",)
    assert owners_of(("@all",), ["dlrm"]) == ("@all",) and owners_of({}, ["dlrm"]) == ()
    config = NightlyConfig(owners=owners)
    alert = alert_of(bisected=verdict(paths=("aten/src/x.cpp", "@everyone")))
    assert issue_of(alert, config, at(13)).body.rstrip().endswith("cc @vision @core")


def test_two_alerts_with_one_culprit_are_one():
    elder = alert_of(bisected=verdict(), issue="https://github.com/o/r/issues/7")
    night = elder.nights[0].model_copy(update={"run": "r0015", "started": at(15), "findings": {B: "+9.0%"}})
    younger = elder.model_copy(
        update={"key": "b" * 16, "tests": (B,), "opened": at(15), "nights": (night,), "effects": {B: 0.09}}
    )
    other = younger.model_copy(update={"key": "d" * 16, "bisected": verdict(commit="e" * 40)})
    failing = younger.model_copy(update={"key": "f" * 16, "kind": "failure"})
    first, second, *rest = merge_same_culprits((elder, younger, other, failing), at(16))
    assert first.tests == (B, A) and first.is_open and first.opened == at(10) and first.effects == {B: 0.09}
    assert second.merged_into == elder.key and second.closed == at(16) and state_of(second, at(16)) == "merged"
    assert second.closed_because == (
        "the same culprit, `cccccccccccc`, as of alert [`aaaaaaaaaaaaaaaa`](https://github.com/o/r/issues/7), "
        "which has its tests now"
    )
    assert rest == [other, failing]
    assert merge_same_culprits((first, second, *rest), at(17)) == (first, second, *rest), "once"
    issue = issue_of(second, NightlyConfig(), at(16))
    assert issue.not_planned and not issue.is_open and issue.comments[-1][1].startswith("**Closed**: the same culprit")
