"""What people need to know is said once below an issue, on GitHub and in the outbox; the label of a state is the bot's,
all others are people's."""

import dataclasses

import pytest
from fake_github.issues import Issue
from fake_github.pulls import close, open_pull_request
from faulty_proxy import LOSE_ANSWER
from github_servers import BOT, OTHER, REPOSITORY
from test_github_issues import ISSUE, changed, fail, tracker

from bot.errors import BotError
from bot.github import client as client_module
from bot.github.issue import culprit_key
from bot.github.issue_file import IssueFile, read_issues
from bot.github.outbox import Outbox

K1, K2 = "1" * 16, "2" * 16
BACK, GONE = (K1, "**It is back**"), (K2, "**Recovered**")
on_the_fake = pytest.mark.parametrize("hub", ["fake"], indirect=True)
CULPRIT = "c0ffee" + "0" * 34


@pytest.fixture
def pauses(monkeypatch):
    monkeypatch.setattr(client_module.time, "sleep", lambda seconds: None)


def said(hub, number=1):
    return [one["body"].split("-->\n")[1].strip() for one in hub.call("GET", f"issues/{number}/comments")]


def test_each_comment_is_posted_once_and_none_on_a_new_issue(hub):
    tracker().put(changed(comments=(BACK,)))
    assert said(hub) == [], "a new issue tells all itself"
    assert tracker().put(changed(comments=(BACK,))).effect == "unchanged"
    assert tracker().put(changed(comments=(BACK, GONE), revision=1)).effect == "updated"
    assert said(hub) == ["**Recovered**"]
    hub.proxy.seen.clear()
    assert tracker().put(changed(comments=(BACK, GONE), revision=1)).effect == "unchanged"
    assert not any("/comments" in request for request in hub.proxy.seen), "that it was said stands in the issue"
    assert said(hub) == ["**Recovered**"]


@on_the_fake
def test_a_comment_whose_answer_was_lost_is_not_posted_twice(hub, pauses):
    tracker().put(ISSUE)
    fail(hub, LOSE_ANSWER, request="POST /repos/torch-owner/nightlies/issues/1/comments")
    tracker().put(changed(comments=(BACK,)))
    assert said(hub) == ["**It is back**"]


@on_the_fake
def test_a_comment_after_which_the_start_was_killed_is_not_posted_twice(hub):
    tracker().put(ISSUE)
    body = hub.issues()[0]["body"]
    tracker().put(changed(comments=(BACK,)))
    hub.call("PATCH", "issues/1", body=body)
    tracker().put(changed(comments=(BACK,)))
    assert said(hub) == ["**It is back**"]


@on_the_fake
def test_an_issue_that_people_have_locked_is_updated_without_a_word(hub):
    tracker().put(ISSUE)
    repository = hub.fake.world.repository(*REPOSITORY.split("/"))
    repository.roles[BOT] = "triage"
    repository.table(Issue)[1].locked = True
    assert tracker().put(changed(body="second", comments=(BACK,))).effect == "updated"
    assert said(hub) == [] and "second" in hub.issues()[0]["body"]
    repository.table(Issue)[1].locked = False
    assert tracker().put(changed(body="second", comments=(BACK,))).effect == "unchanged", "it is old news by now"


@on_the_fake
def test_a_comment_of_somebody_else_with_the_key_counts_for_nothing(hub):
    tracker().put(ISSUE)
    hub.call("POST", "issues/1/comments", OTHER, body=f"<!-- torchbench-comment: {K1} -->\nmine")
    tracker().put(changed(comments=(BACK,)))
    assert said(hub) == ["mine", "**It is back**"]


def test_who_has_closed_an_issue_is_not_told_more_until_it_is_opened_for_another_reason(hub):
    tracker().put(changed(occasion="first"))
    hub.call("PATCH", "issues/1", "torch-owner", state="closed")
    assert tracker().put(changed(occasion="first", comments=(BACK,), body="second")).effect == "left closed"
    assert said(hub) == []
    tracker().put(changed(occasion="relapse", comments=(BACK, GONE)))
    assert said(hub) == ["**Recovered**"]


def test_the_label_of_a_state_is_replaced_and_peoples_labels_stay(hub):
    tracker().put(changed(labels=(*ISSUE.labels, "alert: filed")))
    hub.call("POST", "labels", "torch-owner", name="help wanted", color="ededed")
    hub.call(
        "PATCH", "issues/1", "torch-owner", labels=["torchbench", "help wanted", "alert: filed", "alert: relapsed"]
    )
    assert tracker().put(changed(labels=(*ISSUE.labels, "alert: acknowledged"))).effect == "updated"
    (issue,) = hub.issues()
    assert {one["name"] for one in issue["labels"]} == {"torchbench", "help wanted", "alert: acknowledged"}
    assert tracker().put(changed(labels=(*ISSUE.labels, "alert: acknowledged"))).effect == "unchanged"
    assert tracker().put(ISSUE).effect == "unchanged", "of an issue without a state nothing is changed"


def test_what_was_nothing_is_closed_as_not_planned(hub):
    tracker().put(ISSUE)
    tracker().put(changed(is_open=False, not_planned=True, body="called noise"))
    assert hub.issues()[0]["state_reason"] == "not_planned"


@pytest.fixture
def pull(hub):
    """A merged pull request whose head is the culprit."""
    repository = next(one for one in hub.fake.world.repositories if one.full_name == REPOSITORY)
    repository.commits[CULPRIT] = ()
    repository.branches["faster"] = CULPRIT
    repository.branches.setdefault(repository.default_branch, CULPRIT)
    pull = open_pull_request(hub.fake.world, repository, OTHER, "faster")
    close(hub.fake.world, pull, merged_by="torch-owner")
    return pull.number


@on_the_fake
def test_the_culprits_pull_request_is_told_once(hub, pull):
    tracker().put(ISSUE)
    told = changed(culprit=(CULPRIT, "A bisection has come to a commit of this."))
    for effect in ("updated", "unchanged"):
        assert tracker().put(told).effect == effect
    (comment,) = said(hub, pull)
    issue = next(one for one in hub.issues() if one["number"] != pull)
    assert comment.startswith("A bisection has come to a commit of this.") and comment.endswith(issue["html_url"])
    assert culprit_key(told) in issue["body"]


@on_the_fake
def test_a_culprit_that_was_known_when_the_issue_was_made_is_told_the_next_time(hub, pull):
    for _ in range(3):
        tracker().put(changed(culprit=(CULPRIT, "It was this.")))
    assert len(said(hub, pull)) == 1


@on_the_fake
def test_a_culprit_of_another_repository_is_told_nowhere_and_stops_nothing(hub):
    tracker().put(ISSUE)
    told = changed(culprit=("ab" * 20, "It was this."))
    assert [tracker().put(told).effect for _ in range(2)] == ["updated", "unchanged"]


def test_in_the_outbox_comments_stand_below_the_issue_and_stay(tmp_path):
    outbox = Outbox(tmp_path)
    outbox.put(changed(comments=(BACK,)))
    (path,) = tmp_path.iterdir()
    assert "**It is back**" not in path.read_text()
    assert outbox.put(changed(comments=(BACK, GONE))).effect == "updated"
    assert [outbox.put(changed(comments=(GONE,), body="next")).effect for _ in range(2)] == ["updated", "unchanged"]
    text = path.read_text()
    assert text.count("**Recovered**") == 1 and text.index("next") < text.index("**It is back**")


def test_a_file_of_issues_keeps_comments_and_refuses_those_that_the_bot_does_not_make(tmp_path):
    path, whole = tmp_path / "issues.json", changed(comments=(BACK,), record="QUJD", culprit=(CULPRIT, "told"))
    IssueFile(path).put(whole)
    assert read_issues(path) == (whole,)
    for wrong in (
        {"comments": (("no key", "x"),)},
        {"comments": ((K1, "x" * 60_001),)},
        {"comments": tuple((f"{number:016x}", "x") for number in range(21))},
        {"culprit": ("--upload-pack=x", "told")},
        {"record": "QUJD-->"},
        {"record": "A" * 30_001},
        {"labels": (*ISSUE.labels, "alert: filed", "alert: noise")},
    ):
        with pytest.raises((BotError, ValueError)):
            IssueFile(path).put(dataclasses.replace(whole, **wrong))
            read_issues(path)
