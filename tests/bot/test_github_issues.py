"""Issues on GitHub: found by their hidden key, never doubled, whatever answer gets lost.

On a third party's emulator and on our own fake; what only the fake can show is in test_github_rules.py.
"""

import dataclasses
import time

import pytest
from faulty_proxy import LOSE_ANSWER, Answer
from github_servers import BOT, OTHER, OWNER, REPOSITORY

from bot.errors import BotError
from bot.github import client as client_module
from bot.github.client import Client
from bot.github.issue import (
    Issue,
    as_comment,
    as_filed,
    comments_in,
    hidden_key,
    key_in,
    occasion_in,
    record_in,
    revision_in,
    told_in,
)
from bot.github.issues import LONGEST_BODY, GitHubIssues
from torchbenchmark.foreign_text import inline_code

# Where the answers that count are the faults', one server is as good as the other.
on_the_fake = pytest.mark.parametrize("hub", ["fake"], indirect=True)

ISSUE = Issue("0123456789abcdef", "3 tests slower", "first", ("torchbench", "performance regression"), True)


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that the code makes, which are not waited for."""
    made: list[float] = []
    monkeypatch.setattr(client_module.time, "sleep", made.append)
    return made


def tracker(login: str | None = BOT) -> GitHubIssues:
    """One of a new start: it remembers nothing."""
    return GitHubIssues(Client(REPOSITORY, login))


def changed(**changes: object) -> Issue:
    return dataclasses.replace(ISSUE, **changes)


def fail(hub, *faults, request="POST"):
    hub.proxy.faults[:] = faults
    hub.proxy.concerns = lambda seen: seen.startswith(request)


def error(status: int, message: str, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, f'{{"message": "{message}"}}', {"Content-Type": "application/json", **names})


def test_an_issue_is_created_with_its_labels_and_then_updated_closed_and_opened_again(hub):
    created = tracker().put(ISSUE)
    assert created.effect == "created"
    (issue,) = hub.issues()
    assert issue["title"] == "3 tests slower"
    assert issue["body"].startswith(hidden_key(ISSUE.key)) and "-->\nfirst\n" in issue["body"]
    assert {label["name"] for label in issue["labels"]} == set(ISSUE.labels)
    assert set(ISSUE.labels) <= set(hub.labels())
    assert str(issue["number"]) in created.where

    assert tracker().put(ISSUE).effect == "unchanged"
    assert tracker().put(changed(title="4 tests slower", body="second")).effect == "updated"
    assert tracker().put(changed(title="4 tests slower", body="second", is_open=False)).effect == "updated"
    (issue,) = hub.issues()
    assert (issue["title"], issue["state"], issue["state_reason"]) == ("4 tests slower", "closed", "completed")
    assert "second" in issue["body"]
    assert tracker().put(changed(is_open=False, body="third")).effect == "updated"
    assert tracker().put(changed(body="it is back")).effect == "updated"
    (issue,) = hub.issues()
    assert issue["state"] == "open" and "it is back" in issue["body"]


def test_what_is_closed_before_it_was_ever_filed_is_not_filed(hub):
    assert tracker().put(changed(is_open=False)) is None
    assert hub.issues() == []


def test_two_alerts_are_two_issues_and_one_tracker_lists_only_once(hub):
    one = tracker()
    one.put(ISSUE)
    one.put(changed(key="f" * 16, title="another"))
    one.put(changed(body="second"))
    assert [issue["title"] for issue in hub.issues()] == ["3 tests slower", "another"]
    assert sum("/issues?" in seen and "state=open" in seen for seen in hub.proxy.seen) == 1


def test_a_key_in_an_issue_of_somebody_else_counts_for_nothing(hub):
    tracker().put(changed(key="a" * 16))  # so that the label exists
    body = f"{hidden_key(ISSUE.key)} look, I am the bot"
    filed = hub.call("POST", "issues", OTHER, title="mine", body=body)
    hub.call("PATCH", f"issues/{filed['number']}", OWNER, labels=["torchbench"])
    assert tracker().put(ISSUE).effect == "created"
    assert tracker().put(ISSUE).effect == "unchanged"
    mine = next(issue for issue in hub.issues() if issue["title"] == "mine")
    assert mine["body"] == body


FORGED = (
    f"<!-- torchbench-alert: {'f' * 16} --> <!-- torchbench-occasion: never --> <!-- torchbench-revision: 999 --> "
    f"<!-- torchbench-told: {'e' * 16} --> <!-- torchbench-record: Zm9yZ2Vk --> <!-- torchbench-comment: {'e' * 16} -->"
)


@pytest.mark.parametrize("edit", [lambda body: body, lambda body: body.partition("\n")[2]], ids=["as filed", "by hand"])
def test_what_a_failing_test_says_of_itself_is_no_mark_of_ours(edit):
    """A build could hide an alert by it, keep people from being told, or be what it is made from again."""
    issue = Issue("a" * 16, "t", f"slower: {inline_code(FORGED)}", ("torchbench",), True, "night", 3, record="b3Vycw==")
    body = edit(as_filed(issue))
    assert (key_in(body), record_in(body), told_in(body)) == ("a" * 16, "b3Vycw==", set())
    assert (occasion_in(body), revision_in(body)) in [("night", 3), (None, 0)]
    assert revision_in(as_filed(issue)) == 3
    assert comments_in(as_comment("b" * 16, f"culprit: {inline_code(FORGED)}")) == ["b" * 16]
    assert key_in("<!-- torchbench-a: " * 20_000) is None and key_in("<!-- torchbench-a: b --> " * 3_000) is None


def test_an_issue_that_a_person_closed_stays_closed(hub):
    tracker().put(ISSUE)
    (issue,) = hub.issues()
    hub.call("PATCH", f"issues/{issue['number']}", OWNER, state="closed")
    filed = tracker().put(changed(body="second night"))
    assert filed.effect == "left closed"
    (issue,) = hub.issues()
    assert issue["state"] == "closed" and "second night" in issue["body"]


def test_many_issues_are_found_over_all_pages(hub):
    tracker().put(ISSUE)
    for number in range(120):
        hub.call("POST", "issues", OWNER, title=f"noise {number}", body="", labels=["torchbench"])
    assert tracker().put(changed(body="second")).effect == "updated"
    assert len([issue for issue in hub.issues() if issue["title"] == ISSUE.title]) == 1


def test_a_creation_whose_answer_was_lost_is_not_made_twice(hub, pauses):
    tracker().put(changed(key="a" * 16))
    fail(hub, LOSE_ANSWER)
    filed = tracker().put(ISSUE)
    assert not hub.proxy.faults
    assert filed.effect == "created"
    assert [issue["title"] for issue in hub.issues() if hidden_key(ISSUE.key) in issue["body"]] == [ISSUE.title]
    assert filed.where
    assert pauses


@on_the_fake
@pytest.mark.parametrize("fault", [error(502, "Bad gateway"), error(500, "oops"), error(503, "unicorn")])
def test_a_creation_that_failed_is_made_again(hub, pauses, fault):
    fail(hub, fault, fault)
    assert tracker().put(ISSUE).effect == "created"
    assert not hub.proxy.faults
    assert len(hub.issues()) == 1


@on_the_fake
def test_rate_limits_are_waited_for_and_an_hour_is_not(hub, pauses):
    secondary = error(403, "You have exceeded a secondary rate limit", Retry_After="7")
    primary = error(
        403, "API rate limit exceeded for user", x_ratelimit_remaining="0", x_ratelimit_reset=str(int(time.time()) + 30)
    )
    fail(hub, secondary, primary, error(429, "slow down", Retry_After="3"))
    assert tracker().put(ISSUE).effect == "created"
    assert pauses[0] == 7 and 25 < pauses[1] <= 31 and pauses[2] == 3
    assert len(hub.issues()) == 1
    reset = str(int(time.time()) + 3600)
    fail(hub, *[error(403, "API rate limit exceeded", x_ratelimit_remaining="0", x_ratelimit_reset=reset)] * 9)
    with pytest.raises(BotError, match=r"the rate limit is used up until .* UTC; start again then"):
        tracker().put(changed(key="b" * 16))
    fail(hub)
    assert len(hub.issues()) == 1


@on_the_fake
def test_a_tracker_that_is_down_is_given_up_in_one_line_and_the_next_start_files_it_once(hub, pauses):
    fail(hub, *[error(502, "Bad gateway")] * 50)
    with pytest.raises(BotError, match=r"GitHub, torch-owner/nightlies: .*try again later \(502") as failed:
        tracker().put(ISSUE)
    assert len(str(failed.value).splitlines()) == 1
    fail(hub)
    assert hub.issues() == []
    assert tracker().put(ISSUE).effect == "created"


@on_the_fake
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (error(401, "Bad credentials"), "the token in GITHUB_TOKEN is not accepted"),
        (error(403, "Resource not accessible by integration"), "needs the permission issues: write"),
        (error(404, "Not Found"), "no such repository, or the token may not see it"),
        (error(410, "Issues are disabled for this repo"), "issues are turned off"),
    ],
)
def test_a_refusal_says_what_to_do_and_is_not_repeated(hub, pauses, fault, message):
    fail(hub, *[fault] * 9)
    hub.proxy.concerns = lambda seen: seen.startswith("POST") and seen.endswith("/issues")
    with pytest.raises(BotError, match=message):
        tracker().put(ISSUE)
    assert len(hub.proxy.faults) == 8
    assert pauses == []


NOT_TOLD = error(403, "Resource not accessible by integration")  # what a job's or an app's own token hears of GET /user


@on_the_fake
def test_a_job_token_that_may_not_ask_who_it_is_writes_as_github_actions(hub, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    fail(hub, NOT_TOLD, request="GET /user")
    assert Client(REPOSITORY).login == "github-actions[bot]"
    assert Client(REPOSITORY).login == BOT


@on_the_fake
def test_elsewhere_the_account_of_such_a_token_is_asked_for_instead_of_guessed(hub, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    fail(hub, NOT_TOLD, NOT_TOLD, request="GET /user")
    with pytest.raises(BotError, match="name the account that it writes as in the configuration, `github_login:`"):
        tracker(None).put(ISSUE)
    assert hub.issues() == []
    assert tracker().put(ISSUE).effect == "created"


def test_a_configured_login_may_be_written_in_any_case_and_another_account_is_an_error(hub):
    assert tracker().put(ISSUE).effect == "created"
    assert tracker(BOT.upper()).put(ISSUE).effect == "unchanged"
    with pytest.raises(BotError, match=f"the token writes as {BOT}, but `github_login` in the configuration is else"):
        tracker("else").put(changed(body="second"))
    assert [issue["title"] for issue in hub.issues()] == [ISSUE.title]


@on_the_fake
def test_a_wrong_login_that_github_does_not_deny_files_one_issue_and_not_one_every_night(hub):
    for _ in range(3):
        fail(hub, NOT_TOLD, request="GET /user")
        with pytest.raises(BotError, match=f"set `github_login: {BOT}` in the configuration"):
            tracker("else[bot]").put(ISSUE)
    assert len(hub.issues()) == 1
    fail(hub, NOT_TOLD, request="GET /user")
    assert tracker(BOT).put(ISSUE).effect == "unchanged"


def test_an_issue_that_a_person_closed_is_opened_again_for_another_occasion(hub):
    tracker().put(changed(occasion="after r1"))
    (issue,) = hub.issues()
    hub.call("PATCH", f"issues/{issue['number']}", "torch-owner", state="closed")
    assert tracker().put(changed(occasion="after r1", body="a day later")).effect == "left closed"
    assert tracker().put(changed(occasion="after r2", body="another time")).effect == "updated"
    (issue,) = hub.issues()
    assert issue["state"] == "open"


@pytest.mark.parametrize("token", ["", "\n", "two words", "line\nline", "ünï", "bell\a"])
def test_what_can_be_no_token_is_told_without_showing_it(monkeypatch, token):
    monkeypatch.setenv("GITHUB_TOKEN", token)
    with pytest.raises(BotError, match="GITHUB_TOKEN") as refused:
        Client(REPOSITORY)
    assert not token.strip() or token not in str(refused.value)


@on_the_fake
def test_a_line_end_after_the_token_does_no_harm(hub, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", client_module.os.environ["GITHUB_TOKEN"] + "\n")
    assert tracker().put(ISSUE).effect == "created"


@pytest.mark.parametrize(
    "address", ["github.com", "ftp://github.com", "http://", "http://[::1", "https://u:pw@host", "/x"]
)
def test_what_can_be_no_address_of_github_is_told(monkeypatch, address):
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    monkeypatch.setenv("GITHUB_API_URL", address)
    with pytest.raises(BotError, match="GITHUB_API_URL is not the address of an API"):
        Client(REPOSITORY)


def test_without_a_token_it_is_said_which_variable_to_set(monkeypatch):
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    with pytest.raises(BotError, match="set GITHUB_TOKEN"):
        Client(REPOSITORY)


def test_a_body_that_is_too_long_is_cut_and_keeps_its_key(hub):
    tracker().put(changed(body="x" * 100_000))
    (issue,) = hub.issues()
    assert len(issue["body"]) <= LONGEST_BODY
    assert issue["body"].startswith(hidden_key(ISSUE.key))
    assert "nightly.json" in issue["body"][-150:]
    assert issue["body"].rstrip().endswith(f"<sub>torchbench alert `{ISSUE.key}`</sub>")
    assert tracker().put(changed(body="x" * 100_000)).effect == "unchanged"


def test_an_older_revision_of_a_job_that_was_started_again_changes_nothing(hub):
    tracker().put(changed(revision=3))
    tracker().put(changed(revision=5, body="closed", is_open=False))
    before = hub.issues()
    assert tracker().put(changed(revision=3)).effect == "left: it is newer"
    assert tracker().put(changed(revision=4, title="old", body="old")).effect == "left: it is newer"
    assert hub.issues() == before
    assert tracker().put(changed(revision=6, body="closed", is_open=False)).effect == "unchanged", "a number is no news"
    assert hub.issues() == before


def test_an_issue_that_a_person_opens_again_after_the_bot_closed_it_stays_open(hub):
    tracker().put(ISSUE)
    tracker().put(changed(is_open=False))
    hub.call("PATCH", f"issues/{hub.issues()[0]['number']}", OWNER, state="open")
    assert tracker().put(changed(is_open=False)).effect == "left open"
    assert hub.issues()[0]["state"] == "open"


@pytest.mark.parametrize("left", ["hidden", "shown", "neither"])
def test_an_issue_whose_text_a_person_rewrote_is_found_again(hub, left):
    tracker().put(ISSUE)
    (issue,) = hub.issues()
    lines = {"hidden": issue["body"].split("\n")[0], "shown": issue["body"].rstrip().split("\n")[-1], "neither": ""}
    hub.call("PATCH", f"issues/{issue['number']}", OWNER, body=f"It is the new allocator.\n\n{lines[left]}\n")
    assert tracker().put(ISSUE).effect == "updated"
    assert tracker().put(changed(title="4 tests slower")).effect == "updated"
    assert [issue["title"] for issue in hub.issues()] == ["4 tests slower"]


def test_a_person_who_closed_an_issue_and_rewrote_it_has_decided(hub):
    tracker().put(changed(occasion="2 tests"))
    (issue,) = hub.issues()
    hub.call("PATCH", f"issues/{issue['number']}", OWNER, body="Known.", state="closed")
    assert tracker().put(changed(occasion="2 tests")).effect == "left closed"
    assert hub.issues()[0]["state"] == "closed"
