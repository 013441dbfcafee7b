"""Conversations for tests are true: what is said sends GitHub's event, and the bot's answers are read once."""

import pytest
from conversation import ACTIONS_LOGIN, OTHER_BOT, STRANGER, Conversation
from github_servers import BOT, own_github

from bot.github.events import CommentEvent, Ignored, read_event


@pytest.fixture
def talk(tmp_path):
    with own_github(tmp_path) as hub:
        yield Conversation(hub)


def test_what_is_said_is_an_event_that_the_bot_heeds_and_an_edit_is_none(talk):
    number = talk.open_pull_request()
    said = talk.say("maintainer", "/benchmark", on=number)
    event = read_event("issue_comment", said)
    assert isinstance(event, CommentEvent) and event.is_on_pull_request
    assert event.comment.created_at > talk.pull_request(number).head_repository.pushed_at
    assert isinstance(read_event("issue_comment", talk.edit(said, "/benchmark help")), Ignored)
    assert isinstance(read_event("issue_comment", talk.delete(said)), Ignored)
    assert isinstance(read_event("issue_comment", talk.say(OTHER_BOT, "/benchmark", on=number)), Ignored)


def test_answers_are_what_the_bot_wrote_since_they_were_last_asked_for(talk):
    number = talk.open_pull_request(by=STRANGER, fork=True)
    talk.bot_says("long ago", on=number)
    talk.say(STRANGER, "hello", on=number)
    assert talk.answers(number) == []
    talk.hub.call("POST", f"issues/{number}/comments", BOT, body="hello")
    assert talk.answers(number) == ["hello"]
    assert talk.answers(number) == []
    assert talk.bot_comments(number) == ["long ago", "hello"]


def test_a_pull_request_is_pushed_to_merged_closed_and_loses_its_fork(talk):
    first, second = talk.open_pull_request(), talk.open_pull_request(by=STRANGER, fork=True)
    assert talk.push(first) == talk.head(first) != talk.head(second)
    talk.merge(first)
    talk.close(second)
    talk.delete_head_repository(second)
    shown = [talk.hub.call("GET", f"pulls/{number}") for number in (first, second)]
    assert [(pull["state"], pull["merged"]) for pull in shown] == [("closed", True), ("closed", False)]
    assert shown[1]["head"]["repo"] is None


def test_an_alert_is_an_issue_of_the_bot(talk):
    said = talk.say("triager", "/ack", on=talk.open_issue("the body"))
    event = read_event("issue_comment", said)
    assert isinstance(event, CommentEvent) and not event.is_on_pull_request
    assert (event.issue.user.login, event.issue.body, talk.reactions(said)) == (BOT, "the body", [])


def test_the_bot_may_be_a_job_with_the_permissions_that_it_is_given(talk, monkeypatch):
    talk.as_job(monkeypatch, pull_requests="write")
    number = talk.open_pull_request()
    talk.bot_says("earlier", on=number)
    assert talk.bot_comments(number) == ["earlier"]
    comment = talk.hub.call("GET", f"issues/{number}/comments")[0]
    assert comment["user"]["login"] == ACTIONS_LOGIN
