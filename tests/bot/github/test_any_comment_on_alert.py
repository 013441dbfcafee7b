"""Whatever a comment on an alert says: an answer or silence, never an exception; and what is kept and shown of it
commands nobody, mentions nobody and links nowhere."""

import re
import string
import tempfile
from datetime import datetime

import pytest
from alert_talk import KEY, WHERE, alert_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from test_any_comment import NOW, Scripted

from baselines.store import open_store
from bot.alert_issue import issue_of
from bot.config import NightlyConfig
from bot.github.actions import Action, Dispatch, Reply
from bot.github.alert_store import change_alerts, find_alert
from bot.github.answering import answer, said_in
from bot.github.commands.all_commands import names_at
from bot.github.commands.bisect import is_a_start
from bot.github.commands.command import Conversation
from bot.github.events import CommentEvent, read_event
from bot.github.issue import hidden_key
from torchbenchmark.foreign_text import printable

KINDS = ("regression", "failure", "improvement", "count", "environment")
MARK = re.compile(r"<!-- torchbench-[^\n]*? -->")
WORD = st.one_of(
    st.sampled_from(
        ["7d", "2w", "999w", "0h", "v1..main", "a..b", "..", "a...b", "--help..x", "a..b@{u}", "HEAD~1..x"]
    ),
    st.sampled_from(
        ["@torch-owner/team", "<b>", "https://evil.example", "[a](b)", "`", "``", "|", "::error::x", "$(id)", "-->"]
    ),
    st.text(string.printable.replace("\n", ""), max_size=12),
    st.text(max_size=30),
)


def event_of(text: str) -> CommentEvent:
    event = read_event(
        "issue_comment",
        {
            "action": "created",
            "comment": {"id": 7, "body": text, "user": {"login": "writer"}, "created_at": "2026-11-27T11:59:00Z"},
            "issue": {"number": 5, "state": "open", "body": hidden_key(KEY), "user": {"login": "perf-bot"}},
            "repository": {"full_name": "o/r"},
        },
    )
    assert isinstance(event, CommentEvent)
    return event


@pytest.fixture(scope="module")
def store():
    with tempfile.TemporaryDirectory() as folder:
        yield open_store(folder)


def heard(store, text: str, kind: str) -> tuple[Action, ...] | None:
    alert = alert_of() if kind == "regression" else alert_of(kind=kind, intervals=(), effects={}, signal="")
    change_alerts(store, *WHERE, lambda before: (alert,))
    event = event_of(text)
    said = said_in(event)
    if said is None:
        return None
    talk = Conversation(event, NightlyConfig(), Scripted(), lambda: store, NOW, "writer")
    return answer(said, talk).actions


def shown(text: str) -> str:
    """What is read as Markdown: no hidden mark, no code."""
    return re.sub(r"`[^`\n]*`", "", MARK.sub("", text))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(names_at("alert"))), st.lists(WORD, max_size=8).map(" ".join), st.sampled_from(KINDS))
def test_any_words_of_a_command_are_answered_harmlessly(store, name, words, kind):
    actions = heard(store, f"/{name} {words}", kind)
    assert actions
    for action in actions:
        assert TypeAdapter(Action).validate_json(action.model_dump_json(by_alias=True)) == action
        if isinstance(action, Dispatch):
            assert is_a_start(action, KEY)
        if isinstance(action, Reply) and name != "help":
            usage = re.sub(r"`/[^`\n]*`", "", action.body)
            assert not re.search(r"[@<>\[\]|`]|https?:|::", shown(usage)), shown(usage)
    issue = issue_of(find_alert(store, KEY), NightlyConfig(), NOW)
    assert printable(issue.title) == issue.title and "evil" not in shown(issue.body) and "@" not in shown(issue.body)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_answered_or_silence(store, text):
    heard(store, text, "regression")


@settings(deadline=None)
@given(st.text(string.printable, max_size=40))
def test_whatever_a_time_is_an_alert_is_not_snoozed_for_longer_than_may_be(store, time):
    heard(store, f"/snooze {time}", "regression")
    snoozed = find_alert(store, KEY).snoozed
    if snoozed is not None:
        said = datetime.fromisoformat("2026-11-27T11:59:00+00:00")
        assert 0 < (snoozed.until - said).total_seconds() <= 90 * 24 * 3600
