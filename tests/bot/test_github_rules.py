"""What GitHub's own rules do to the bot: tokens and permissions, what is valid, spelling, limits, deleted accounts.

On our own fake, which alone keeps them.
"""

import dataclasses

import pytest
from fake_github import Repository, Token
from fake_github.issues import Issue as FakeIssue
from faulty_proxy import CUT_BODY, LOSE_ANSWER, Answer
from github_servers import BOT, OTHER, OWNER, REPOSITORY, TOKENS

from bot.errors import BotError
from bot.github.client import ACTIONS_LOGIN, LONGEST_WAIT_S, Client
from bot.github.issue import Issue, hidden_key
from bot.github.issues import GitHubIssues

pytestmark = pytest.mark.parametrize("hub", ["fake"], indirect=True)

ISSUE = Issue("0123456789abcdef", "3 tests slower", "first", ("torchbench", "performance regression"), True)


def tracker(login: str | None = BOT, repository: str = REPOSITORY) -> GitHubIssues:
    """One of a new start: it remembers nothing."""
    return GitHubIssues(Client(repository, login))


def changed(**changes: object) -> Issue:
    return dataclasses.replace(ISSUE, **changes)


@pytest.fixture
def job_token(hub, monkeypatch):
    """Makes this process a job with a token of such permissions."""

    def use(**permissions: str) -> None:
        if "github-actions[bot]" not in hub.fake.world.accounts:
            hub.fake.world.add_account("github-actions[bot]", "Bot")
        token = Token("token-of-a-job", ACTIONS_LOGIN, "installation", tuple(permissions.items()), (REPOSITORY,))
        hub.fake.world.add_token(token)
        monkeypatch.setenv("GITHUB_TOKEN", token.value)
        monkeypatch.setenv("GITHUB_ACTIONS", "true")

    return use


def repository(hub) -> Repository:
    return hub.fake.world.repository(*REPOSITORY.split("/"))


def stored(hub) -> dict[int, FakeIssue]:
    return repository(hub).table(FakeIssue)


def writes(hub) -> list[str]:
    return [seen for seen in hub.proxy.seen if not seen.startswith("GET")]


def fail(hub, *faults, request: str) -> None:
    hub.proxy.faults[:] = faults
    hub.proxy.concerns = lambda seen: seen.startswith(request)


# Who may do what


def test_a_token_that_github_does_not_know_is_told_at_once(hub, pauses, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "guessed")
    for login in (BOT, None):
        with pytest.raises(BotError, match=r"GITHUB_TOKEN is not accepted \(401: Bad credentials\)"):
            tracker(login).put(ISSUE)
    assert len(hub.proxy.seen) == 2
    assert not pauses and not stored(hub)


def test_a_job_token_with_the_permission_files_as_github_actions_and_finds_it_again(hub, job_token):
    job_token(issues="write")
    assert tracker(None).put(ISSUE).effect == "created"
    assert tracker(None).put(ISSUE).effect == "unchanged"
    (issue,) = hub.issues()
    assert issue["user"]["login"] == ACTIONS_LOGIN
    assert {label["name"] for label in issue["labels"]} == set(ISSUE.labels)


def test_a_job_token_without_the_permission_is_told_which_it_needs(hub, job_token, pauses):
    job_token(contents="read", issues="read")
    refused = r"needs the permission issues: write \(403: Resource not accessible by integration\)"
    with pytest.raises(BotError, match=refused):
        tracker(None).put(ISSUE)
    assert len(writes(hub)) == 1 and not pauses and not stored(hub)


def test_a_repository_that_the_token_may_not_see_is_told_as_one_that_is_not_there(hub):
    hub.fake.world.add_repository(f"{OWNER}/secret", private=True)
    for name in ("secret", "never"):
        with pytest.raises(BotError, match=f"{OWNER}/{name}: no such repository, or the token may not see it"):
            tracker(repository=f"{OWNER}/{name}").put(ISSUE)
    assert not writes(hub)


def test_where_issues_are_turned_off_it_is_told_at_once(hub, pauses):
    repository(hub).has_issues = False
    with pytest.raises(BotError, match=r"issues are turned off there \(410: Issues has been disabled"):
        tracker().put(ISSUE)
    assert sum(seen.endswith("/issues") for seen in writes(hub)) == 1 and not pauses


def test_an_archived_repository_is_told_in_the_words_of_github(hub, pauses):
    repository(hub).is_archived = True
    with pytest.raises(BotError, match=r"\(403: Repository was archived so is read-only\.\)"):
        tracker().put(ISSUE)
    assert len(writes(hub)) == 1 and not pauses


# What is valid


def test_what_github_refuses_is_not_sent_again_and_nothing_is_filed(hub, pauses):
    with pytest.raises(BotError, match=r"GitHub refuses what was sent \(422: Validation Failed"):
        tracker().put(changed(title=" "))
    assert sum(seen.endswith("/issues") for seen in writes(hub)) == 1
    assert not pauses and not stored(hub)


@pytest.mark.parametrize("letter", ["x", "ü", "🐌"])
def test_the_longest_title_and_body_are_within_what_github_takes(hub, letter):
    too_long = changed(title=letter * 1_000, body=letter * 100_000)
    assert tracker().put(too_long).effect == "created"
    assert tracker().put(too_long).effect == "unchanged"


def test_labels_that_exist_in_another_case_are_used_as_they_are(hub):
    for name in ("TorchBench", "Performance Regression"):
        hub.call("POST", "labels", OWNER, name=name, color="123456")
    assert tracker().put(ISSUE).effect == "created"
    assert tracker().put(ISSUE).effect == "unchanged"
    assert hub.labels() == ["Performance Regression", "TorchBench"]


def test_a_label_that_somebody_else_has_made_meanwhile_is_used(hub):
    for name in ISSUE.labels:
        hub.call("POST", "labels", OWNER, name=name, color="123456")
    not_yet = Answer(404, '{"message": "Not Found"}', {"Content-Type": "application/json"})
    fail(hub, not_yet, request=f"GET /repos/{REPOSITORY}/labels/")
    assert tracker().put(ISSUE).effect == "created"
    assert not hub.proxy.faults and writes(hub).count(f"POST /repos/{REPOSITORY}/labels") == 3
    assert {label["name"] for label in hub.issues()[0]["labels"]} == set(ISSUE.labels)


@pytest.mark.parametrize("fault", [LOSE_ANSWER, CUT_BODY])
@pytest.mark.parametrize("what", ["labels", "issues"])
def test_what_was_made_although_the_answer_did_not_come_is_not_made_twice(hub, pauses, fault, what):
    fail(hub, fault, request=f"POST /repos/{REPOSITORY}/{what}")
    assert tracker().put(ISSUE).effect == "created"
    assert not hub.proxy.faults
    assert len(hub.issues()) == 1 and set(hub.labels()) == set(ISSUE.labels)
    assert tracker().put(ISSUE).effect == "unchanged"


def test_a_change_whose_answer_is_lost_is_made_again(hub, pauses):
    tracker().put(ISSUE)
    fail(hub, LOSE_ANSWER, request="PATCH")
    assert tracker().put(changed(body="second")).effect == "updated"
    assert not hub.proxy.faults and "second" in hub.issues()[0]["body"]


# Whose an issue is


@pytest.mark.parametrize("shown_as", ["nobody", "ghost"])
def test_an_issue_of_a_deleted_account_that_has_the_key_is_not_the_bots(hub, shown_as):
    if shown_as == "ghost":
        hub.fake.world.ghost = hub.fake.world.add_account("ghost")
    hub.call("POST", "labels", OWNER, name="torchbench", color="123456")
    hub.call("POST", "issues", OTHER, title="mine", body=hidden_key(ISSUE.key))
    hub.call("PATCH", "issues/1", OWNER, labels=["torchbench"])
    hub.fake.world.delete_account(OTHER)
    assert tracker().put(ISSUE).effect == "created"
    assert tracker().put(changed(body="second")).effect == "updated"
    assert [issue["title"] for issue in hub.issues()] == ["mine", ISSUE.title]


def test_the_login_is_the_same_in_any_case(hub):
    hub.fake.world.account(BOT).login = "Perf-Bot"
    assert tracker("perf-bot").put(ISSUE).effect == "created"
    assert hub.issues()[0]["user"]["login"] == "Perf-Bot"
    for login in ("PERF-BOT", None):
        assert tracker(login).put(ISSUE).effect == "unchanged"
    hub.call("PATCH", "issues/1", BOT, state="closed")
    assert tracker("perf-bot").put(ISSUE).effect == "updated", "what the bot closed itself it opens again"
    assert hub.issues()[0]["state"] == "open"


def test_the_token_of_an_app_outside_a_job_needs_the_login_in_the_configuration(hub, job_token, monkeypatch):
    job_token(issues="write")
    monkeypatch.delenv("GITHUB_ACTIONS")
    with pytest.raises(BotError, match="github_login"):
        tracker(None).put(ISSUE)
    assert not writes(hub)
    assert tracker(ACTIONS_LOGIN).put(ISSUE).effect == "created"
    assert tracker(ACTIONS_LOGIN.upper()).put(ISSUE).effect == "unchanged"


def test_the_repository_may_be_written_in_any_case(hub):
    assert tracker().put(ISSUE).effect == "created"
    assert tracker(repository=REPOSITORY.upper()).put(ISSUE).effect == "unchanged"


def test_a_repository_that_was_renamed_is_followed(hub):
    repository(hub).former_names.add(f"{OWNER}/old")
    assert tracker(repository=f"{OWNER}/old").put(ISSUE).effect == "created"
    assert tracker().put(ISSUE).effect == "unchanged"


def test_a_body_that_was_saved_in_the_browser_counts_as_unchanged(hub):
    tracker().put(changed(body="first\nsecond"))
    stored(hub)[1].body = stored(hub)[1].body.replace("\n", "\r\n").rstrip()
    assert tracker().put(changed(body="first\nsecond")).effect == "unchanged"


def test_a_pull_request_of_the_bot_that_has_the_key_is_no_issue(hub):
    tracker().put(ISSUE)
    stored(hub)[1].is_pull_request = True
    assert tracker().put(ISSUE).effect == "created"
    assert tracker().put(changed(body="second")).effect == "updated"
    assert "second" not in stored(hub)[1].body and "second" in stored(hub)[2].body


# Limits


def test_a_budget_that_is_given_back_soon_is_waited_for(hub, pauses):
    hub.fake.limits.use_up(TOKENS[BOT], for_s=30)
    assert tracker().put(ISSUE).effect == "created"
    assert 28 < sum(pauses) < 40
    assert len(hub.issues()) == 1


def test_a_budget_that_is_given_back_in_an_hour_is_not_waited_for(hub, pauses):
    hub.fake.limits.use_up(TOKENS[BOT])
    with pytest.raises(BotError, match=r"the rate limit is used up until .* UTC; start again then"):
        tracker().put(ISSUE)
    assert not pauses and not stored(hub)


def test_a_secondary_limit_is_waited_out_as_long_as_github_says_or_else_a_minute(hub, pauses):
    hub.fake.limits.strike_writes(retry_after=7)
    hub.fake.limits.strike_writes(retry_after=None)
    assert tracker().put(ISSUE).effect == "created"
    assert pauses == [7, 60]
    hub.fake.limits.strike_writes(retry_after=9)
    assert tracker().put(changed(body="second")).effect == "updated"
    assert sum(pauses) == 7 + 60 + 9
    assert len(hub.issues()) == 1


# What was found wrong by this fake

JSON = {"Content-Type": "application/json"}


def limited(status: int, message: str, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, f'{{"message": "{message}"}}', {**JSON, **names})


def test_an_account_whose_labels_github_drops_does_not_file_one_issue_every_night(hub, monkeypatch):
    for name in ISSUE.labels:
        hub.call("POST", "labels", OWNER, name=name, color="123456")
    monkeypatch.setenv("GITHUB_TOKEN", TOKENS[OTHER])
    for _ in range(3):
        with pytest.raises(BotError, match="label"):
            tracker(OTHER).put(ISSUE)
    assert len(stored(hub)) <= 1


def test_an_account_that_may_make_no_labels_is_told_so_and_not_that_the_repository_is_not_there(hub, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", TOKENS[OTHER])
    with pytest.raises(BotError, match="label"):
        tracker(OTHER).put(ISSUE)


def test_a_label_that_github_refuses_is_told_as_refused(hub):
    with pytest.raises(BotError, match="422"):
        tracker().put(changed(labels=("torchbench", "n" * 51)))


def test_what_github_refuses_is_told_with_the_field_and_the_reason(hub):
    with pytest.raises(BotError, match=r"422.*title"):
        tracker().put(changed(title=" "))


def test_an_issue_that_was_closed_by_an_account_since_deleted_stays_closed(hub):
    world = hub.fake.world
    world.add_account("visitor")
    world.add_token(Token("token-of-the-visitor", "visitor"))
    repository(hub).roles["visitor"] = "triage"
    tracker().put(ISSUE)
    stored(hub)[1].closed_by = world.account("visitor")
    stored(hub)[1].state = "closed"
    world.delete_account("visitor")
    assert tracker().put(changed(body="second")).effect == "left closed"


@pytest.mark.parametrize("request_", ["GET /user", "GET /repos", "PATCH"])
@pytest.mark.parametrize("status", [403, 429])
def test_no_limit_is_waited_for_longer_than_the_longest_wait(hub, pauses, request_, status):
    tracker().put(ISSUE)
    fail(hub, limited(status, "You have exceeded a secondary rate limit", Retry_After="3600"), request=request_)
    with pytest.raises(BotError, match="rate limit"):
        tracker().put(changed(body="second"))
    assert sum(pauses) <= LONGEST_WAIT_S


@pytest.mark.parametrize("request_", ["GET /user", "GET /repos", "PATCH", "POST"])
def test_a_limit_that_is_told_by_429_without_a_retry_after_is_waited_for(hub, pauses, request_):
    if request_ != "POST":
        tracker().put(ISSUE)
    reset = str(int(hub.fake.world.clock.time()) + 20)
    fail(
        hub,
        limited(429, "API rate limit exceeded for user ID 1.", x_ratelimit_remaining="0", x_ratelimit_reset=reset),
        limited(429, "You have exceeded a secondary rate limit"),
        request=request_,
    )
    assert tracker().put(changed(body="second")).effect in ("created", "updated")
    assert 60 <= sum(pauses) < 100


@pytest.mark.parametrize("request_", ["GET /repos", "PATCH"])
def test_a_github_that_is_down_is_told_alike_for_reading_and_for_writing(hub, pauses, request_):
    tracker().put(ISSUE)
    fail(hub, *[Answer(503, "<html>unicorn</html>")] * 9, request=request_)
    with pytest.raises(BotError, match=r"GitHub does not work at present; try again later \(503"):
        tracker().put(changed(body="second"))


@pytest.mark.parametrize("request_", ["GET /repos", "PATCH", "POST"])
@pytest.mark.parametrize("body", ["<html>Sign in to the proxy</html>", "", "null", "{}"])
def test_an_answer_that_is_not_githubs_is_an_error_in_one_line(hub, pauses, request_, body):
    if request_ != "POST":
        tracker().put(ISSUE)
    fail(hub, *[Answer(200, body)] * 9, request=request_)
    with pytest.raises(BotError, match="not the answer of GitHub's API"):
        tracker().put(changed(body="second"))


def test_an_archived_repository_is_not_told_as_a_missing_permission(hub):
    repository(hub).is_archived = True
    with pytest.raises(BotError) as refused:
        tracker().put(ISSUE)
    assert "needs the permission" not in str(refused.value)


def test_an_issue_whose_label_a_person_took_off_is_found_and_labelled_again(hub):
    tracker().put(ISSUE)
    stored(hub)[1].labels = []
    assert tracker().put(changed(body="second")).effect == "updated"
    (issue,) = hub.issues()
    assert "second" in issue["body"]
    assert "torchbench" in {label["name"] for label in issue["labels"]}
    assert tracker().put(changed(body="second")).effect == "unchanged"
