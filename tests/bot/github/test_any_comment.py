"""Whatever a comment says: an answer or silence, never an exception; and nothing that it says commands anybody."""

import re
import string
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from bot.config import NightlyConfig
from bot.github.actions import Action, Measure, Reply, Status
from bot.github.answering import Answer, answer, said_in
from bot.github.commands.all_commands import ALL_COMMANDS
from bot.github.commands.asked import KEYS
from bot.github.commands.command import Conversation
from bot.github.events import CommentEvent, read_event
from bot.github.looking import BotComment, PullRequest, Role, WorkflowRun
from bot.github.refusals import MOST_AN_HOUR, is_one_too_many, refusal_mark
from bot.pull_request_settings import PullRequestSettings

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
BASE, HEAD = "b" * 40, "a" * 40


@dataclass
class Scripted:
    """A Looking of a repository with one pull request."""

    comments: tuple[BotComment, ...] = ()
    teams: dict[str, set[str]] = field(default_factory=dict)

    def is_us(self, login: str) -> bool:
        return login == "perf-bot"

    def role(self, login: str) -> Role:
        return "write" if login == "writer" else "read"

    def is_member(self, team: str, login: str) -> bool:
        return login in self.teams[team]

    def pull_request(self, number: int) -> PullRequest:
        return PullRequest(number, True, False, "writer", "main", BASE, HEAD, "o/r", NOW - timedelta(hours=1))

    def merge_base(self, base: str, head: str) -> str | None:
        return base

    def commit(self, revision: str) -> str | None:
        return BASE if revision == "main" else None

    def bot_comments(self, number: int) -> tuple[BotComment, ...]:
        return self.comments

    def run(self, id: int) -> WorkflowRun | None:
        return None


def event_of(text: str, by: str = "writer") -> CommentEvent:
    payload: dict[str, Any] = {
        "action": "created",
        "comment": {"id": 7, "body": text, "user": {"login": by}, "created_at": "2026-11-27T11:59:00Z"},
        "issue": {"number": 5, "state": "open", "pull_request": {}},
        "repository": {"full_name": "o/r"},
    }
    event = read_event("issue_comment", payload)
    assert isinstance(event, CommentEvent)
    return event


def answered(text: str, by: str = "writer", look: Scripted | None = None, **limits: Any) -> Answer | None:
    event = event_of(text, by)
    said = said_in(event)
    if said is None:
        return None

    def no_store():
        raise AssertionError("no command on a pull request needs the store")

    config = NightlyConfig(pull_requests=PullRequestSettings(**limits))
    return answer(said, Conversation(event, config, look or Scripted(), no_store, NOW, by, 99, "https://g.example/run"))


def text_of(found: Answer) -> str:
    (body,) = [one.body for one in found.actions if isinstance(one, Reply | Status)]
    return body


_OURS = re.compile(r"<!-- torchbench-[^\n]*? -->|</?details>|</?summary>|\[[^\]\n]*\]\(https://g\.example/run\)")
WORD = st.one_of(
    st.sampled_from(
        ["resnet18", "hf_*", "*", "v1", "eval", "status", "cancel", "help", "profile", "sha=", "[", "[!]", "[z-a]"]
    ),
    st.builds(
        "{}={}".format, st.sampled_from([*KEYS, "devcie"]), st.text(string.printable.replace("\n", ""), max_size=12)
    ),
    st.sampled_from(
        ["@torch-owner/team", "<b>", "https://evil.example", "[a](b)", "`", "``", "|", "::error::x", "$(id)", "-->"]
    ),
    st.text(max_size=12),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORD, max_size=8).map(" ".join), st.sampled_from(["", "a line\n", "```\n"]))
def test_any_words_of_a_command_are_answered_with_text_that_mentions_and_links_nothing(words, before):
    found = answered(f"{before}/benchmark {words}")
    if found is None:
        return
    assert found.actions
    for action in found.actions:
        assert TypeAdapter(Action).validate_json(action.model_dump_json(by_alias=True)) == action
    if any(isinstance(one, Reply | Status) for one in found.actions):
        shown = re.sub(r"`[^`\n]*`", "", _OURS.sub("", text_of(found)))
        assert not re.search(r"[@<>\[\]|`]|https?:|::", shown), shown
    assert re.fullmatch(r"/[a-z ]+(: (wrong use|refused))?", found.outcome)


@given(st.text(max_size=300))
def test_any_text_is_answered_or_silence(text):
    assert answered(text) is None or not text.isspace()


@given(st.text(string.ascii_letters, min_size=1, max_size=30))
def test_a_request_holds_whole_test_ids_whatever_was_said(word):
    found = answered(f"/benchmark resnet18 {word}")
    assert found is not None
    for one in found.actions:
        if isinstance(one, Measure):
            assert all(re.fullmatch(r"test_(train|eval)\[[\w.-]+\]", test) for test in one.request.tests)


def test_the_subcommands_that_a_misspelt_one_is_told_are_those_that_there_are():
    from bot.github.commands.chosen_tests import SUBCOMMANDS

    names = [command.name.split() for command in ALL_COMMANDS if command.place == "pull request"]
    assert {name[1] for name in names if len(name) > 1} == set(SUBCOMMANDS)


def test_members_of_a_team_that_the_configuration_lists_may_command():
    look = Scripted(teams={"o/perf": {"tester"}, "o/other": set()})
    asked = answered("/benchmark resnet18", "tester", look, teams=("o/other", "o/perf"))
    assert asked is not None and asked.outcome == "/benchmark"
    refused = answered("/benchmark resnet18", "reader", look, teams=("o/other", "o/perf"))
    assert refused is not None
    assert text_of(refused).endswith(
        "**Not done:** you may not command the bot here. Ask somebody who may: whose role in this repository is write, "
        "maintain or admin, or is in a team that the configuration lists."
    )


def test_what_was_refused_is_forgotten_after_an_hour():
    def told(minutes_ago: float, login: str = "Reader", body: str = "") -> BotComment:
        return BotComment(1, body or f"{refusal_mark(login)}\nno", NOW - timedelta(minutes=minutes_ago))

    lately = [told(1), told(30), told(59)]
    assert len(lately) == MOST_AN_HOUR
    assert is_one_too_many(lately, "reader", NOW)
    assert not is_one_too_many([*lately[:2], told(61)], "reader", NOW)
    assert not is_one_too_many([*lately[:2], told(1, "other")], "reader", NOW)
    assert not is_one_too_many([*lately[:2], told(1, body=f"a word, and then {refusal_mark('reader')}")], "reader", NOW)
    found = answered("/benchmark nonsense", "reader", Scripted(comments=tuple(lately)))
    assert found is not None and [action.kind for action in found.actions] == ["react"]
