"""What is looked up on GitHub to answer a command: roles, teams, pull requests, commits, comments and runs."""

import pytest
from conversation import Conversation
from fake_github import Token
from fake_github.workflows import Step, add_run, add_workflow
from faulty_proxy import LOSE_ANSWER, Answer
from github_servers import BOT, OWNER, REPOSITORY, TOKENS

from bot.errors import BotError
from bot.github.client import Client
from bot.github.github_looking import GitHubLooking

pytestmark = [pytest.mark.parametrize("hub", ["fake"], indirect=True), pytest.mark.usefixtures("pauses")]


@pytest.fixture
def talk(hub) -> Conversation:
    return Conversation(hub)


def look(repository: str = REPOSITORY) -> GitHubLooking:
    return GitHubLooking(Client(repository))


def fail(hub, *faults, request: str) -> None:
    hub.proxy.faults[:] = faults
    hub.proxy.concerns = lambda seen: seen.startswith(request)


# Who may


@pytest.mark.parametrize(
    ("login", "role"),
    [
        (OWNER, "admin"),
        ("maintainer", "maintain"),
        ("writer", "write"),
        ("WRITER", "write"),
        ("triager", "triage"),
        ("reader", "read"),
        ("stranger", "read"),
        ("nobody-of-that-name", "none"),
        ("other-app[bot]", "none"),
        ("../../../user", "none"),
        ("", "none"),
        ("a b", "none"),
    ],
)
@pytest.mark.parametrize("as_job", [False, True])
def test_the_role_of_an_account_is_its_own(talk, monkeypatch, as_job, login, role):
    if as_job:
        talk.as_job(monkeypatch)
    assert look().role(login) == role


def test_in_a_private_repository_a_stranger_has_no_role(talk, hub):
    talk.repository.private = True
    assert look().role("stranger") == "none"
    assert look().role("reader") == "read"


def test_a_role_of_an_organisations_own_making_counts_as_what_it_was_made_from(hub):
    made = Answer(200, '{"permission": "write", "role_name": "perf-crew", "user": null}')
    fail(hub, made, request=f"GET /repos/{REPOSITORY}/collaborators")
    assert look().role("writer") == "write"
    fail(hub, Answer(200, '{"permission": "none", "role_name": ""}'), request=f"GET /repos/{REPOSITORY}/coll")
    assert look().role("writer") == "none"


def test_a_role_is_looked_up_anew_each_time(talk):
    looking = look()
    assert looking.role("writer") == "write"
    del talk.repository.roles["writer"]
    assert looking.role("writer") == "read"


def test_a_token_that_may_not_see_roles_is_told_and_nobody_is_let_in(talk, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", TOKENS["mallory"])
    with pytest.raises(BotError, match=r"403: Must have push access to view collaborator permission"):
        look().role("writer")


@pytest.fixture
def team(hub, talk, monkeypatch):
    world = hub.fake.world
    world.add_account("torch-org", "Organization")
    team = world.add_team("torch-org/perf-crew", "Reader", BOT)
    team.members["stranger"] = "pending"
    return team


def test_a_member_of_a_team_is_one_once_the_invitation_was_taken(team):
    logins = ("reader", "READER", "stranger", "writer", "nobody", "../../user", "")
    members = [login for login in logins if look().is_member("torch-org/perf-crew", login)]
    assert members == ["reader", "READER"]
    assert look().is_member("Torch-Org/Perf-Crew", "reader")


@pytest.mark.parametrize("name", ["torch-org/gone", "no-org/perf-crew"])
def test_a_team_that_is_not_there_is_an_error_and_not_a_team_without_members(team, name):
    with pytest.raises(BotError, match=f"there is no team {name}, or the token may not see it; a job's own token sees"):
        look().is_member(name, "reader")


def test_a_job_may_see_no_team_and_is_told_what_may(team, talk, monkeypatch):
    talk.as_job(monkeypatch, pull_requests="write")
    with pytest.raises(BotError, match="set TORCHBENCH_TEAMS_TOKEN to one that may read the organisation's members"):
        look().is_member("torch-org/perf-crew", "reader")
    talk.as_job(monkeypatch, members="read")
    assert look().is_member("torch-org/perf-crew", "reader")


def test_a_job_looks_up_teams_by_a_token_for_that_alone(team, talk, hub, monkeypatch):
    talk.as_job(monkeypatch, pull_requests="write")
    hub.fake.world.add_token(Token("of-members", BOT, "fine-grained", (("members", "read"),)))
    monkeypatch.setenv("TORCHBENCH_TEAMS_TOKEN", "of-members\n")
    looking = look()
    assert looking.is_member("torch-org/perf-crew", "reader")
    assert not looking.is_member("torch-org/perf-crew", "writer")
    assert looking.client.login == "github-actions[bot]", "all else is done by the job's own"
    assert looking.role("writer") == "write"
    monkeypatch.setenv("TORCHBENCH_TEAMS_TOKEN", "guessed")
    with pytest.raises(BotError, match="or the token may not see it; a job's own token sees none") as failed:
        look().is_member("torch-org/perf-crew", "reader")
    assert "guessed" not in str(failed.value)
    monkeypatch.setenv("TORCHBENCH_TEAMS_TOKEN", "two words")
    with pytest.raises(BotError, match="TORCHBENCH_TEAMS_TOKEN holds characters that no token has"):
        look().is_member("torch-org/perf-crew", "reader")


def test_what_is_no_team_is_told(talk, hub):
    for name in ("perf-crew", "torch-org/..", "a/b/c", "torch-org/perf-crew?x=y"):
        with pytest.raises(BotError, match="is no team; write ORGANISATION/TEAM"):
            look().is_member(name, "reader")
    assert not hub.proxy.seen


# Pull requests and commits


def test_a_pull_request_is_as_it_is_now(talk):
    number = talk.open_pull_request()
    pull = look().pull_request(number)
    assert (pull.number, pull.is_open, pull.is_merged, pull.author) == (number, True, False, "writer")
    assert (pull.base_branch, pull.base, pull.head) == ("main", talk.repository.branches["main"], talk.head(number))
    assert (pull.head_repository, pull.head_pushed_at) == (REPOSITORY, talk.repository.pushed_at)
    newer = talk.push(number)
    assert look().pull_request(number).head == newer
    talk.merge(number)
    pull = look().pull_request(number)
    assert (pull.is_open, pull.is_merged) == (False, True)


def test_the_base_is_the_end_of_the_base_branch_and_not_what_it_was_when_the_pull_request_was_opened(talk, hub):
    number, opened = talk.open_pull_request(), talk.repository.branches["main"]
    newer = hub.fake.world.push(talk.repository, "main")
    assert talk.hub.call("GET", f"pulls/{number}")["base"]["sha"] == opened
    assert look().pull_request(number).base == newer
    del talk.repository.branches["main"]
    assert look().pull_request(number).base == opened


def test_a_pull_request_of_a_fork_says_when_the_fork_was_last_pushed_to(talk, hub):
    number = talk.open_pull_request(by="stranger", fork=True)
    fork = talk.pull_request(number).head_repository
    hub.fake.world.clock.advance(100)
    hub.fake.world.push(fork, "another-branch")
    pull = look().pull_request(number)
    assert (pull.head_repository, pull.head_pushed_at) == ("stranger/nightlies", fork.pushed_at)
    talk.delete_head_repository(number)
    pull = look().pull_request(number)
    assert (pull.head_repository, pull.head_pushed_at, pull.head) == (None, None, talk.head(number))


def test_a_pull_request_of_a_deleted_account_has_no_author(talk, hub):
    hub.fake.world.ghost = hub.fake.world.add_account("ghost")
    number = talk.open_pull_request(by="stranger", fork=True)
    hub.fake.world.delete_account("stranger")
    assert look().pull_request(number).author == "ghost"
    assert look().pull_request(number).head == talk.head(number)


def test_a_pull_request_that_is_not_there_is_told_so_and_a_repository_too(talk):
    number = talk.open_issue("an alert")
    with pytest.raises(BotError, match=f"there is no pull request #{number}, or the token may not see it"):
        look().pull_request(number)
    with pytest.raises(BotError, match="never: no such repository, or the token may not see it"):
        look(f"{OWNER}/never").pull_request(1)


def test_where_two_commits_part_is_their_merge_base(talk, hub):
    number, start = talk.open_pull_request(by="stranger", fork=True), talk.repository.branches["main"]
    newer = hub.fake.world.push(talk.repository, "main")
    assert look().merge_base(newer, talk.head(number)) == start
    assert look().merge_base(newer, newer) == newer
    talk.repository.commits["0" * 40] = ()
    for other in ("0" * 40, "f" * 40):
        assert look().merge_base(newer, other) is None
    with pytest.raises(BotError, match="is not the whole name of a commit"):
        look().merge_base("main", newer)


def test_a_commit_is_found_by_branch_tag_and_the_beginning_of_its_name(talk):
    main = talk.repository.branches["main"]
    talk.repository.branches["feature/fast#1"] = talk.repository.tags["v1.0"] = main
    names = ("main", "heads/main", "feature/fast#1", "v1.0", main, main[:7])
    assert [look().commit(name) for name in names] == [main] * len(names)
    assert look().commit("nowhere") is None
    assert look().commit("f" * 40) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../issues/1",
        "main/../../pulls",
        "a..b",
        "-rf",
        "/main",
        "main/",
        "a b",
        "a\nb",
        "main?x=y",
        "x" * 251,
        "a:b",
    ],
)
def test_what_can_be_no_name_of_a_commit_is_none_and_is_not_asked(talk, hub, name):
    assert look().commit(name) is None
    assert not hub.proxy.seen


# Comments and runs


def test_the_bots_comments_are_its_own_over_all_pages(talk):
    number = talk.open_pull_request()
    talk.say("stranger", "first", on=number)
    for count in range(60):
        talk.bot_says(f"bot {count}", on=number)
        talk.say("reader", "+1", on=number)
    found = look().bot_comments(number)
    assert [one.body for one in found] == [f"bot {count}" for count in range(60)]
    assert found[0].created_at < found[-1].created_at and found[0].created_at.tzinfo is not None
    with pytest.raises(BotError, match="there is no issue or pull request #99"):
        look().bot_comments(99)


def test_a_run_tells_what_its_jobs_are_at(talk, hub):
    workflow = add_workflow(hub.fake.world, talk.repository, "benchmark.yml")
    run = add_run(hub.fake.world, talk.repository, workflow, hub.fake.world.account("writer"), "plan", "measure")
    run.status, run.jobs[0].status, run.jobs[1].status = "in_progress", "completed", "in_progress"
    run.jobs[1].steps = [Step("Build", "completed", "success"), Step("Measure", "in_progress"), Step("Leave")]
    found = look().run(run.id)
    assert (found.id, found.state) == (run.id, "in_progress")
    assert found.jobs == (("plan", "completed", ""), ("measure", "in_progress", "Measure"))
    assert found.url.endswith(f"/actions/runs/{run.id}")
    assert look().run(99) is None


# Moods


@pytest.mark.parametrize("fault", [LOSE_ANSWER, Answer(502, "<html>unicorn</html>"), Answer(500, "")])
def test_reading_is_tried_again(talk, hub, pauses, fault):
    number = talk.open_pull_request()
    fail(hub, fault, request=f"GET /repos/{REPOSITORY}/pulls")
    assert look().pull_request(number).head == talk.head(number)
    assert not hub.proxy.faults and pauses


def test_a_limit_is_waited_for_and_one_of_an_hour_is_told(talk, hub, pauses):
    limited = Answer(403, '{"message": "You have exceeded a secondary rate limit"}', {"Retry-After": "11"})
    fail(hub, limited, request=f"GET /repos/{REPOSITORY}/collaborators")
    assert look().role("writer") == "write" and pauses == [11]
    hub.fake.limits.use_up(TOKENS[BOT])
    with pytest.raises(BotError, match="the rate limit is used up"):
        look().role("writer")


def test_a_limit_on_looking_at_a_team_is_not_told_as_a_missing_right(team, hub):
    limited = Answer(403, '{"message": "You have exceeded a secondary rate limit"}', {"Retry-After": "5000"})
    fail(hub, limited, request="GET /orgs")
    with pytest.raises(BotError, match="the rate limit is used up"):
        look().is_member("torch-org/perf-crew", "reader")


@pytest.mark.parametrize("body", ["<html>Sign in</html>", "null", "{}", "[]", '{"head": null}'])
def test_an_answer_that_is_not_githubs_is_an_error_in_one_line(talk, hub, body):
    number = talk.open_pull_request()
    for ask, path in [
        (lambda: look().role("writer"), "collaborators"),
        (lambda: look().pull_request(number), "pulls"),
        (lambda: look().commit("main"), "commits"),
        (lambda: look().merge_base("a" * 40, "b" * 40), "compare"),
        (lambda: look().run(1), "actions"),
    ]:
        fail(hub, Answer(200, body), request=f"GET /repos/{REPOSITORY}/{path}")
        with pytest.raises(BotError, match="not the answer of GitHub's API"):
            ask()


def test_a_refusal_that_is_a_page_for_people_is_told_in_one_line(talk, hub):
    fail(hub, Answer(403, "<html>Blocked by the firewall</html>"), request=f"GET /repos/{REPOSITORY}/pulls")
    with pytest.raises(BotError, match=r"\(403\)") as failed:
        look().pull_request(talk.open_pull_request())
    assert "html" not in str(failed.value)


def test_a_renamed_repository_is_followed(talk, hub):
    number = talk.open_pull_request()
    talk.repository.former_names.add(f"{OWNER}/old")
    assert look(f"{OWNER}/old").pull_request(number).head == talk.head(number)
    looking = look()
    assert looking.role("writer") == "write"
    there = talk.repository
    there.former_names.add(REPOSITORY)
    there.name = "renamed"
    assert looking.role("writer") == "write"
    assert looking.commit("main") == there.branches["main"]
    assert looking.bot_comments(number) == ()


def test_a_token_of_a_stranger_reads_what_is_public(talk, hub, monkeypatch):
    number = talk.open_pull_request()
    hub.fake.world.add_token(Token("strangers", "stranger"))
    monkeypatch.setenv("GITHUB_TOKEN", "strangers")
    assert look().pull_request(number).head == talk.head(number)
