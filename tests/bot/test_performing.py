"""What a command says is done on GitHub, once, whatever is started again, lost, deleted, locked or not allowed.

On our own fake, which alone has reactions, check runs' rules and dispatches.
"""

import dataclasses
import random

import pytest
from conversation import ACTIONS_LOGIN, Conversation
from fake_github import Token
from fake_github.checks import CheckRun
from fake_github.comments import Comment
from fake_github.issues import Issue
from fake_github.workflows import Run, add_run, add_workflow
from faulty_proxy import CUT_BODY, LOSE_ANSWER, PASS, Answer
from github_servers import BOT, OTHER, OWNER, REPOSITORY, TOKENS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.benchmark_request import BenchmarkRequest
from bot.errors import BotError
from bot.github.actions import CancelRun, Check, Dispatch, Measure, React, Reply, Status
from bot.github.client import Client
from bot.github.hidden_marks import mark
from bot.github.performing import CHECK_NAME, perform, refusals
from bot.pages.comment_length import CUT, LONGEST_COMMENT, fitting

pytestmark = [pytest.mark.parametrize("hub", ["fake"], indirect=True), pytest.mark.usefixtures("pauses")]
KEY, OTHER_KEY = "0123456789abcdef", "fedcba9876543210"
JOB = {"issues": "write", "pull_requests": "write", "checks": "write", "actions": "write", "contents": "read"}


@pytest.fixture
def talk(hub) -> Conversation:
    return Conversation(hub)


@pytest.fixture
def job(talk, monkeypatch) -> Conversation:
    """The bot is a job that may do everything that it needs."""
    talk.as_job(monkeypatch, **JOB)
    return talk


def do(*actions, login=None):
    """By a new start, which remembers nothing."""
    return perform(Client(REPOSITORY, login), actions)


def do_until_done(*actions) -> None:
    """The job is started again until it has come through."""
    for _ in range(20):
        try:
            do(*actions)
            return
        except BotError as error:
            last = error
    raise last


def effects(*actions, login=None) -> list[str]:
    return [done.effect for done in do(*actions, login=login)]


def fail(hub, *faults, request: str) -> None:
    hub.proxy.faults[:] = faults
    hub.proxy.concerns = lambda seen: seen.startswith(request)


def writes(hub) -> list[str]:
    return [seen for seen in hub.proxy.seen if not seen.startswith("GET")]


def check(talk, number, **changes) -> Check:
    return Check(
        **{"commit": talk.head(number), "key": KEY, "state": "queued", "title": "queued", "summary": "soon", **changes}
    )


def checks(talk) -> list[tuple[str, str, str | None]]:
    return [(one.external_id, one.status, one.conclusion) for one in talk.repository.table(CheckRun).values()]


# Replies and status comments


def test_a_reply_is_posted_once_and_a_status_comment_is_edited_in_place(talk):
    number = talk.open_pull_request()
    reply, queued = Reply(number=number, key=KEY, body="Done."), Status(number=number, key=KEY, body="queued")
    assert effects(reply, queued) == ["made", "made"]
    assert effects(reply, queued) == ["there already", "unchanged"]
    assert effects(reply, Status(number=number, key=KEY, body="measuring")) == ["there already", "changed"]
    assert effects(Reply(number=number, key=OTHER_KEY, body="Done.")) == ["made"]
    assert talk.answers(number) == [
        f"{mark('reply', KEY)}\nDone.",
        f"{mark('status', KEY)}\nmeasuring",
        f"{mark('reply', OTHER_KEY)}\nDone.",
    ]


def test_the_same_key_twice_at_once_is_posted_once(talk):
    number = talk.open_pull_request()
    reply, status = Reply(number=number, key=KEY, body="x"), Status(number=number, key=KEY, body="a")
    again = Status(number=number, key=KEY, body="b")
    assert effects(reply, reply, status, again, again) == ["made", "there already", "made", "changed", "unchanged"]
    assert len(talk.answers(number)) == 2


def test_where_it_was_written_is_told(talk):
    number = talk.open_pull_request()
    (done,) = do(Reply(number=number, key=KEY, body="x"))
    assert f"/pull/{number}#issuecomment-" in done.where
    assert do(done.action)[0].where == done.where


def test_a_mark_in_a_comment_of_somebody_else_or_further_down_counts_for_nothing(talk):
    number = talk.open_pull_request()
    talk.say("stranger", f"{mark('reply', KEY)}\n{mark('status', KEY)}\nlook, I am the bot", on=number)
    talk.bot_says(f"You said:\n{mark('reply', KEY)}", on=number)
    assert effects(Reply(number=number, key=KEY, body="x"), Status(number=number, key=KEY, body="y")) == ["made"] * 2


def test_comments_are_found_over_all_pages(talk, hub):
    number = talk.open_pull_request()
    reply, status = Reply(number=number, key=KEY, body="x"), Status(number=number, key=KEY, body="y")
    for _ in range(105):
        talk.say("reader", "+1", on=number)
    do(reply, status)
    for _ in range(105):
        talk.say("reader", "+1", on=number)
    assert effects(reply, status) == ["there already", "unchanged"]
    hub.proxy.seen.clear()
    do(reply, status)
    assert sum("/comments" in seen for seen in hub.proxy.seen) == 3, "two actions, one listing"


@pytest.mark.parametrize("fault", [LOSE_ANSWER, CUT_BODY, Answer(502, "<html>unicorn</html>")])
@pytest.mark.parametrize("kind", [Reply, Status])
def test_a_comment_whose_answer_is_lost_is_not_written_twice(talk, hub, pauses, fault, kind):
    number = talk.open_pull_request()
    fail(hub, fault, request=f"POST /repos/{REPOSITORY}/issues/{number}/comments")
    (done,) = do(kind(number=number, key=KEY, body="x"))
    assert not hub.proxy.faults and pauses
    assert done.effect == "made" and done.where
    assert len(talk.answers(number)) == 1


@pytest.mark.parametrize("fault", [LOSE_ANSWER, CUT_BODY, Answer(503, "")])
def test_an_edit_whose_answer_is_lost_is_made_again(talk, hub, fault):
    number = talk.open_pull_request()
    do(Status(number=number, key=KEY, body="queued"))
    fail(hub, fault, request="PATCH")
    assert effects(Status(number=number, key=KEY, body="measuring")) == ["changed"]
    assert not hub.proxy.faults and "measuring" in talk.answers(number)[0]


def test_a_status_comment_that_somebody_deleted_is_made_anew_once(talk):
    number = talk.open_pull_request()
    do(Status(number=number, key=KEY, body="queued"))
    talk.repository.table(Comment).clear()
    assert effects(Status(number=number, key=KEY, body="measuring")) == ["made"]
    assert effects(Status(number=number, key=KEY, body="done")) == ["changed"]
    assert talk.bot_comments(number) == [f"{mark('status', KEY)}\ndone"]


def test_a_status_comment_that_is_deleted_while_it_is_edited_is_made_anew_once(talk, hub):
    number = talk.open_pull_request()
    do(Status(number=number, key=KEY, body="queued"))
    comment = next(iter(talk.repository.table(Comment)))
    gone = hub.proxy.fault

    def delete_first(request):
        if request.startswith("PATCH"):
            talk.repository.table(Comment).pop(comment, None)
        return gone(request)

    hub.proxy.fault = delete_first
    statuses = [Status(number=number, key=KEY, body=body) for body in ("measuring", "done")]
    assert effects(*statuses) == ["made", "changed"]
    assert talk.bot_comments(number) == [f"{mark('status', KEY)}\ndone"]


def test_of_two_status_comments_with_one_key_the_older_is_edited(talk):
    number = talk.open_pull_request()
    for _ in range(2):
        talk.bot_says(f"{mark('status', KEY)}\nqueued", on=number)
    assert effects(Status(number=number, key=KEY, body="done")) == ["changed"]
    assert talk.bot_comments(number) == [f"{mark('status', KEY)}\ndone", f"{mark('status', KEY)}\nqueued"]


def test_a_status_that_was_saved_in_the_browser_counts_as_unchanged(talk):
    number = talk.open_pull_request()
    status = Status(number=number, key=KEY, body="queued\nsoon\n")
    do(status)
    (comment,) = talk.repository.table(Comment).values()
    comment.body = comment.body.replace("\n", "\r\n").rstrip()
    assert effects(status) == ["unchanged"]


@pytest.mark.parametrize("letter", ["x", "ü", "🐌", "x\n"])
def test_a_text_that_is_too_long_is_cut_with_a_notice_and_github_takes_it(job, letter):
    number = job.open_pull_request()
    reply, status = (kind(number=number, key=KEY, body=letter * 100_000) for kind in (Reply, Status))
    assert len(reply.body) <= LONGEST_COMMENT and reply.body.rstrip().endswith(CUT)
    summary = check(job, number, summary=letter * 100_000)
    assert effects(reply, status, summary) == ["made"] * 3
    assert effects(reply, status, summary) == ["there already", "unchanged", "unchanged"]


def test_what_a_cut_text_ends_in_is_closed_before_the_notice():
    lines = ["<details>", "<summary>all</summary>", "", "```", *["a line of a log"] * 10_000, "```", "</details>"]
    ended = Reply(number=1, key=KEY, body="\n".join(lines)).body.split("a line of a log\n")[-1]
    assert ended.split() == ["```", "</details>", *CUT.split()]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["<details>", "</details>", "```", "~~~~", "x" * 900, "🐌" * 300, ""]), min_size=1))
def test_whatever_is_cut_fits_and_says_that_it_was_cut(hub, lines):
    text = "\n".join(lines) * 100
    fit = fitting(text)
    assert len(fit) <= LONGEST_COMMENT
    assert fit == text or fit.rstrip().endswith(CUT)


# Reactions, checks, runs


def test_a_reaction_is_made_once(job):
    number = job.open_pull_request()
    said = job.say("writer", "/benchmark", on=number)
    eyes = React(comment=said["comment"]["id"], content="eyes")
    assert effects(eyes, eyes) == ["made", "there already"]
    assert effects(eyes) == ["there already"]
    assert job.reactions(said) == ["eyes"]


@pytest.mark.parametrize("fault", [LOSE_ANSWER, Answer(500, "")])
def test_a_reaction_whose_answer_is_lost_is_made_once(job, hub, fault):
    said = job.say("writer", "/benchmark", on=job.open_pull_request())
    fail(hub, fault, request="POST")
    do(React(comment=said["comment"]["id"], content="eyes"))
    assert not hub.proxy.faults and job.reactions(said) == ["eyes"]


def test_a_check_is_made_once_and_updated_since(job):
    number = job.open_pull_request()
    assert effects(check(job, number)) == ["made"]
    assert effects(check(job, number)) == ["unchanged"]
    assert effects(check(job, number, state="in_progress")) == ["changed"]
    ended = check(job, number, state="completed", conclusion="neutral", title="no change", summary="all **fine**")
    assert effects(ended) == ["changed"]
    assert effects(ended) == ["unchanged"]
    assert effects(check(job, number, key=OTHER_KEY)) == ["made"]
    assert checks(job) == [(KEY, "completed", "neutral"), (OTHER_KEY, "queued", None)]
    assert {one.name for one in job.repository.table(CheckRun).values()} == {CHECK_NAME}


@pytest.mark.parametrize("fault", [LOSE_ANSWER, CUT_BODY, Answer(502, "")])
def test_a_check_whose_answer_is_lost_is_made_once(job, hub, fault):
    number = job.open_pull_request()
    fail(hub, fault, request="POST")
    assert effects(check(job, number)) == ["made"]
    fail(hub, fault, request="PATCH")
    assert effects(check(job, number, state="in_progress")) == ["changed"]
    assert not hub.proxy.faults and checks(job) == [(KEY, "in_progress", None)]


def test_a_github_that_fails_also_while_it_is_looked_whether_a_check_was_made_is_asked_again(job, hub):
    number = job.open_pull_request()
    hub.proxy.faults[:] = [PASS, LOSE_ANSWER, Answer(502, "")]
    hub.proxy.concerns = lambda seen: "check-runs" in seen
    assert effects(check(job, number)) == ["made"]
    assert not hub.proxy.faults and checks(job) == [(KEY, "queued", None)]


def test_a_check_of_another_app_with_our_key_is_left_alone(job, hub):
    number = job.open_pull_request()
    app = hub.fake.world.account("other-app[bot]")
    theirs = CheckRun(hub.fake.world.new_id(), app, CHECK_NAME, job.head(number), KEY)
    job.repository.table(CheckRun)[theirs.id] = theirs
    assert effects(check(job, number)) == ["made"]
    assert effects(check(job, number, state="in_progress")) == ["changed"]
    assert theirs.status == "queued"


def test_of_two_checks_with_one_key_the_older_is_updated(job, hub):
    number = job.open_pull_request()
    do(check(job, number))
    (first,) = job.repository.table(CheckRun).values()
    second = dataclasses.replace(first, id=hub.fake.world.new_id())
    job.repository.table(CheckRun)[second.id] = second
    assert effects(check(job, number, state="in_progress")) == ["changed"]
    assert checks(job) == [(KEY, "in_progress", None), (KEY, "queued", None)]


@pytest.mark.parametrize(("state", "conclusion"), [("completed", None), ("queued", "success")])
def test_a_check_has_a_conclusion_when_it_is_completed_and_no_other(talk, state, conclusion):
    with pytest.raises(ValidationError, match="conclusion"):
        Check(commit="a" * 40, key=KEY, state=state, conclusion=conclusion, title="t", summary="s")


def test_a_run_is_cancelled_and_one_that_is_over_is_fine(job, hub):
    workflow = add_workflow(hub.fake.world, job.repository, "benchmark.yml")
    run = add_run(hub.fake.world, job.repository, workflow, hub.fake.world.account("writer"), "measure")
    assert effects(CancelRun(run=run.id)) == ["done"]
    assert (run.status, run.conclusion) == ("completed", "cancelled")
    assert effects(CancelRun(run=run.id)) == ["over already"]
    lost = add_run(hub.fake.world, job.repository, workflow, hub.fake.world.account("writer"))
    fail(hub, LOSE_ANSWER, request="POST")
    assert effects(CancelRun(run=lost.id)) == ["over already"]
    assert lost.conclusion == "cancelled"


def runs(talk) -> list[Run]:
    return list(talk.repository.table(Run).values())


def test_a_workflow_is_started_with_its_inputs(job, hub):
    add_workflow(hub.fake.world, job.repository, "bisect.yml", {"signal": False, "good": False})
    job.repository.default_branch = "trunk"
    job.repository.branches["trunk"] = job.repository.branches.pop("main")
    assert effects(Dispatch(workflow="bisect.yml", inputs={"signal": KEY})) == ["done"]
    assert [run.inputs for run in runs(job)] == [{"signal": KEY}]


@pytest.mark.parametrize("fault", [LOSE_ANSWER, Answer(502, "")])
def test_a_start_whose_answer_is_lost_is_made_once(job, hub, fault):
    add_workflow(hub.fake.world, job.repository, "bisect.yml", {"signal": False})
    for _ in range(2):
        fail(hub, fault, request="POST")
        assert effects(Dispatch(workflow="bisect.yml", inputs={"signal": KEY})) == ["done"]
        assert not hub.proxy.faults
    assert len(runs(job)) == 2, "one for each time that it was asked for"


def test_a_workflow_with_a_key_is_started_once(job, hub):
    add_workflow(hub.fake.world, job.repository, "bisect.yml", {"key": False}, "bisect {key}")
    dispatch = Dispatch(workflow="bisect.yml", inputs={"key": KEY}, key=KEY)
    assert effects(dispatch) == ["done"]
    assert effects(dispatch) == ["there already"]
    assert effects(Dispatch(workflow="bisect.yml", inputs={"key": OTHER_KEY}, key=OTHER_KEY)) == ["done"]
    assert len(runs(job)) == 2


def test_measuring_is_left_to_another_job(talk, hub):
    request = BenchmarkRequest(
        key=KEY, repository=REPOSITORY, pull=1, comment=1, asked_by="writer", base="a" * 40, head="b" * 40,
        head_repository=REPOSITORY, suite="smoke", tests=("t",), device="cpu", pairs=6, budget_minutes=1,
    )  # fmt: skip
    assert effects(Measure(request=request)) == ["left"]
    assert not writes(hub)


# What is not allowed


def test_a_check_that_only_an_app_may_make_is_told_once_and_stops_nothing(talk):
    number = talk.open_pull_request()
    done = do(check(talk, number), check(talk, number, key=OTHER_KEY), Reply(number=number, key=KEY, body="x"))
    assert [one.effect for one in done] == ["refused", "refused", "made"]
    (told,) = refusals(done)
    assert told.startswith("no check: only a GitHub App, or a job's own token, may do this (403: ")


def test_a_job_that_may_make_no_checks_or_reactions_is_told_what_it_lacks_and_answers(talk, monkeypatch):
    talk.as_job(monkeypatch, pull_requests="write")
    number = talk.open_pull_request()
    done = do(check(talk, number), Reply(number=number, key=KEY, body="x"))
    assert [one.effect for one in done] == ["refused", "made"]
    assert "needs the permission checks: write (403: Resource not accessible by integration)" in refusals(done)[0]
    talk.as_job(monkeypatch, checks="write")
    said = talk.say("writer", "/benchmark", on=number)
    done = do(React(comment=said["comment"]["id"], content="eyes"), check(talk, number))
    assert [one.effect for one in done] == ["refused", "made"]
    assert "needs the permission issues: write or pull-requests: write" in refusals(done)[0]


def test_a_reaction_to_a_comment_that_was_deleted_stops_nothing(job):
    number = job.open_pull_request()
    said = job.say("writer", "/benchmark", on=number)
    job.delete(said)
    done = do(React(comment=said["comment"]["id"], content="eyes"), Reply(number=number, key=KEY, body="x"))
    assert [one.effect for one in done] == ["refused", "made"]
    assert refusals(done) == ["no reaction: the comment is not there any more, or the token may not see it"]


def test_a_check_on_a_commit_that_is_not_there_stops_nothing(job):
    number = job.open_pull_request()
    assert effects(check(job, number, commit="f" * 40), Reply(number=number, key=KEY, body="x")) == ["refused", "made"]


def test_a_reply_that_the_token_may_not_write_fails_after_the_rest_was_done(talk, monkeypatch, hub):
    talk.as_job(monkeypatch, checks="write")
    number = talk.open_pull_request()
    replies = [Reply(number=number, key=key, body="x") for key in (KEY, OTHER_KEY)]
    with pytest.raises(BotError, match="needs the permission issues: write or pull-requests: write") as failed:
        do(*replies, check(talk, number))
    assert str(failed.value).count("needs the permission") == 1
    assert checks(talk) == [(KEY, "queued", None)]


def test_in_a_conversation_that_is_locked_the_bot_is_silent_and_the_rest_is_done(job):
    number = job.open_pull_request()
    job.lock(number)
    done = do(Reply(number=number, key=KEY, body="x"), Status(number=number, key=KEY, body="y"), check(job, number))
    assert [one.effect for one in done] == ["refused", "refused", "made"]
    assert refusals(done) == [
        "no reply: the conversation is locked, and the bot may not write there (403: Unable to create comment because "
        "issue is locked.)"
    ]


def test_an_issue_that_is_not_there_any_more_is_told_and_stops_nothing(job):
    number, gone = job.open_issue("an alert"), job.open_issue("another")
    del job.repository.table(Issue)[gone]
    assert effects(Reply(number=gone, key=KEY, body="x"), Reply(number=number, key=KEY, body="x")) == [
        "refused",
        "made",
    ]


def test_a_workflow_that_is_not_there_or_takes_no_such_input_fails_in_words(job, hub):
    add_workflow(hub.fake.world, job.repository, "bisect.yml", {"signal": False})
    with pytest.raises(BotError, match=r"422: Unexpected inputs provided: \['other'\]"):
        do(Dispatch(workflow="bisect.yml", inputs={"other": "x"}))
    with pytest.raises(
        BotError, match=r"there is no workflow gone\.yml on the default branch, or the token may not see"
    ):
        do(Dispatch(workflow="gone.yml", inputs={}))
    with pytest.raises(BotError, match="there is no run 99 of a workflow, or the token may not see it"):
        do(CancelRun(run=99))
    assert runs(job) == []


def test_a_run_that_the_token_may_not_cancel_fails_in_words(talk, monkeypatch, hub):
    talk.as_job(monkeypatch, pull_requests="write")
    workflow = add_workflow(hub.fake.world, talk.repository, "benchmark.yml")
    run = add_run(hub.fake.world, talk.repository, workflow, hub.fake.world.account("writer"))
    with pytest.raises(BotError, match="needs the permission actions: write"):
        do(CancelRun(run=run.id))
    assert run.status == "queued"


def test_a_token_that_writes_as_somebody_else_is_told_and_not_written_with_again(talk, monkeypatch, hub):
    talk.as_job(monkeypatch, pull_requests="write")
    number = talk.open_pull_request()
    with pytest.raises(BotError, match=r"set `github_login: github-actions\[bot\]` in the configuration"):
        do(Reply(number=number, key=KEY, body="x"), login="else[bot]")
    assert len(talk.answers(number)) == 1


# Moods


def test_limits_are_waited_for_and_an_hour_is_not(talk, hub, pauses):
    number = talk.open_pull_request()
    hub.fake.limits.strike_writes(retry_after=7)
    hub.fake.limits.strike_writes(retry_after=None)
    assert effects(Reply(number=number, key=KEY, body="x")) == ["made"]
    assert pauses == [7, 60]
    hub.fake.limits.use_up(TOKENS[BOT], for_s=30)
    assert effects(Status(number=number, key=KEY, body="x")) == ["made"]
    hub.fake.limits.use_up(TOKENS[BOT])
    with pytest.raises(BotError, match="the rate limit is used up until"):
        do(Status(number=number, key=KEY, body="y"))
    assert len(talk.answers(number)) == 2


def test_a_reaction_that_a_limit_delays_is_not_refused(job, hub, pauses):
    said = job.say("writer", "/benchmark", on=job.open_pull_request())
    hub.fake.limits.strike_writes(retry_after=9)
    assert effects(React(comment=said["comment"]["id"], content="eyes")) == ["made"]
    assert pauses == [9]


def test_a_limit_of_an_hour_on_a_reaction_is_no_missing_right(job, hub):
    said = job.say("writer", "/benchmark", on=job.open_pull_request())
    limited = Answer(403, '{"message": "You have exceeded a secondary rate limit"}', {"Retry-After": "3600"})
    fail(hub, limited, request="POST")
    with pytest.raises(BotError, match="the rate limit is used up until"):
        do(React(comment=said["comment"]["id"], content="eyes"))


def test_a_github_that_is_down_is_given_up_in_one_line_and_the_next_start_posts_once(talk, hub):
    number = talk.open_pull_request()
    fail(hub, *[Answer(502, "<html>unicorn</html>")] * 50, request="POST")
    with pytest.raises(BotError, match=r"GitHub does not work at present; try again later \(502") as failed:
        do(Reply(number=number, key=KEY, body="x"))
    assert "\n" not in str(failed.value)
    fail(hub, request="POST")
    assert effects(Reply(number=number, key=KEY, body="x")) == ["made"]
    assert len(talk.answers(number)) == 1


@pytest.mark.parametrize("body", ["<html>Sign in to the proxy</html>", "", "null", "{}", "[]"])
@pytest.mark.parametrize("request_", ["GET", "POST", "PATCH"])
def test_an_answer_that_is_not_githubs_is_an_error_in_one_line(talk, hub, request_, body):
    number = talk.open_pull_request()
    if request_ == "PATCH":
        do(Status(number=number, key=KEY, body="x"))
    fail(hub, *[Answer(200, body)] * 9, request=request_)
    with pytest.raises(BotError, match="not the answer of GitHub's API") as failed:
        do(Status(number=number, key=KEY, body="y"))
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("body", ["<html>Sign in to the proxy</html>", "", "null", "{}", '[{"user": 1}]'])
def test_a_listing_that_is_not_githubs_is_not_taken_for_an_empty_one(talk, hub, body):
    number = talk.open_pull_request()
    do(Reply(number=number, key=KEY, body="x"))
    fail(hub, Answer(200, body), request=f"GET /repos/{REPOSITORY}/issues/{number}/comments")
    with pytest.raises(BotError, match="not the answer of GitHub's API"):
        do(Reply(number=number, key=KEY, body="x"))
    assert len(talk.answers(number)) == 1


def test_a_comment_of_a_deleted_account_is_nobodys(talk, hub):
    number = talk.open_pull_request()
    talk.say("stranger", "x", on=number)
    hub.fake.world.delete_account("stranger")
    assert effects(Reply(number=number, key=KEY, body="x")) == ["made"]
    assert effects(Reply(number=number, key=KEY, body="x")) == ["there already"]


def test_a_repository_that_was_renamed_is_written_to_under_its_new_name(talk, hub):
    number = talk.open_pull_request()
    talk.repository.former_names.add(f"{OWNER}/old")
    reply = Reply(number=number, key=KEY, body="x")
    assert perform(Client(f"{OWNER}/old"), [reply])[0].effect == "made"
    assert effects(reply) == ["there already"]


def test_a_repository_that_is_renamed_between_looking_and_writing_is_followed(talk, hub):
    number = talk.open_pull_request()
    client, there = Client(REPOSITORY), talk.repository
    assert client.repo.full_name == REPOSITORY
    there.former_names.add(REPOSITORY)
    there.name = "renamed"
    actions = [Reply(number=number, key=KEY, body="x"), Status(number=number, key=KEY, body="x")]
    assert [done.effect for done in perform(client, actions)] == ["made", "made"]
    assert len(there.table(Comment)) == 2


def test_what_was_said_is_found_in_a_repository_that_is_renamed_meanwhile(talk):
    number = talk.open_pull_request()
    for _ in range(120):
        talk.say("reader", "+1", on=number)
    reply, client, there = Reply(number=number, key=KEY, body="x"), Client(REPOSITORY), talk.repository
    do(reply)
    client.connect()
    there.former_names.add(REPOSITORY)
    there.name = "renamed"
    assert [done.effect for done in perform(client, [reply])] == ["there already"]


def test_an_issue_that_was_transferred_is_not_answered_where_it_went(talk, hub):
    number = talk.open_issue("an alert")
    there = Answer(
        307, '{"message": "Temporary Redirect"}', {"Location": f"{hub.url}/repositories/1/issues/1/comments"}
    )
    fail(hub, there, there, request="POST")
    assert effects(Reply(number=number, key=KEY, body="x")) == ["refused"]


@pytest.mark.parametrize("seed", range(2))
def test_with_a_github_that_fails_every_fifth_call_all_is_there_once_in_its_last_state(job, hub, seed):
    faults = [LOSE_ANSWER, CUT_BODY, Answer(502, "<html>"), Answer(500, ""), Answer(429, "{}", {"Retry-After": "1"})]
    dice, number = random.Random(seed), job.open_pull_request()
    said = job.say("writer", "/benchmark", on=number)
    add_workflow(hub.fake.world, job.repository, "bisect.yml", {"key": False}, "{key}")
    hub.proxy.fault = lambda request: dice.choice(faults) if dice.random() < 0.2 else PASS
    keys = [f"{n:016x}" for n in range(4)]
    for body in ("queued", "measuring", "done"):
        actions = [
            React(comment=said["comment"]["id"], content="eyes"),
            *(kind(number=number, key=key, body=body) for kind in (Reply, Status) for key in keys),
            *(check(job, number, key=key, title=body) for key in keys),
            *(Dispatch(workflow="bisect.yml", inputs={"key": key}, key=key) for key in keys),
        ]
        for _ in range(2):
            do_until_done(*actions)
    posted = job.answers(number)
    assert sorted(posted) == sorted(
        [f"{mark('reply', key)}\nqueued" for key in keys] + [f"{mark('status', key)}\ndone" for key in keys]
    )
    assert sorted(one.external_id for one in job.repository.table(CheckRun).values()) == keys
    assert {one.output["title"] for one in job.repository.table(CheckRun).values()} == {"done"}
    assert sorted(run.inputs["key"] for run in runs(job)) == keys
    assert job.reactions(said) == ["eyes"]


def test_no_secret_is_in_what_is_told(talk, hub, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    hub.fake.world.add_token(Token("ghp_secret", OTHER))
    number = talk.open_pull_request()
    talk.lock(number)
    done = do(Reply(number=number, key=KEY, body="x"))
    assert "secret" not in repr(done) and ACTIONS_LOGIN not in repr(done)
    assert done[0].effect == "refused"
