"""The fake of GitHub where commands are given and obeyed: pull requests, commits, roles and teams, reactions, check
runs, workflows, and the event of a comment. Asked with plain requests, as test_fake_github does."""

import pytest
import requests
from fake_github import FakeGitHub, Token, fake_github, webhooks, workflows
from fake_github.comments import Comment
from fake_github.issues import Issue
from fake_github.pulls import PullRequest, close, open_pull_request
from test_fake_github import REPO, Ask, asker, furnish, job_token, said


@pytest.fixture
def fake():
    with fake_github() as fake:
        furnish(fake)
        yield fake


@pytest.fixture
def ask(fake) -> Ask:
    return asker(fake)


def repository(fake: FakeGitHub):
    return fake.world.repository("Torch-Owner", "nightlies")


def opened(fake: FakeGitHub, **changes) -> PullRequest:
    fake.world.push(repository(fake), "faster")
    return open_pull_request(fake.world, repository(fake), "writer", "faster", **changes)


def from_fork(fake: FakeGitHub) -> PullRequest:
    fork = fake.world.fork(repository(fake), "reader")
    fake.world.push(fork, "main")
    return open_pull_request(fake.world, repository(fake), "reader", "main", fork)


REFUSED = (403, "Resource not accessible by integration")


# Pull requests and commits


def test_a_pull_request_says_which_commits_it_is_of_and_follows_its_branch(fake, ask):
    pull, main = opened(fake), repository(fake).branches["main"]
    shown = ask("GET", f"{REPO}/pulls/1").json()
    assert (shown["head"]["sha"], shown["base"]["sha"], shown["base"]["ref"]) == (pull.last_commit, main, "main")
    assert shown["head"]["repo"]["full_name"] == shown["base"]["repo"]["full_name"] == "Torch-Owner/nightlies"
    assert (shown["state"], shown["merged"], shown["user"]["login"]) == ("open", False, "writer")
    newer = fake.world.push(repository(fake), "faster")
    assert ask("GET", f"{REPO}/pulls/1").json()["head"]["sha"] == newer
    assert ask("GET", f"{REPO}/issues/1").json()["pull_request"]["merged_at"] is None
    close(fake.world, pull, merged_by="writer")
    fake.world.push(repository(fake), "faster")
    shown = ask("GET", f"{REPO}/pulls/1").json()
    assert (shown["state"], shown["merged"], shown["merged_by"]["login"]) == ("closed", True, "writer")
    assert shown["head"]["sha"] == newer, "a pull request that is over takes nothing in"
    assert ask("GET", f"{REPO}/issues/1").json()["pull_request"]["merged_at"] == shown["merged_at"]
    assert said(ask("GET", f"{REPO}/pulls/2")) == (404, "Not Found")


def test_a_pull_request_of_a_fork_says_when_the_fork_was_pushed_to_and_outlives_it(fake, ask):
    pull = from_fork(fake)
    fake.world.clock.advance(60)
    fake.world.push(pull.head_repository, "another")
    head = ask("GET", f"{REPO}/pulls/1").json()["head"]
    assert (head["repo"]["full_name"], head["repo"]["fork"]) == ("reader/nightlies", True)
    assert head["repo"]["pushed_at"] > ask("GET", REPO).json()["pushed_at"]
    fake.world.delete_repository(pull.head_repository)
    assert ask("GET", f"{REPO}/pulls/1").json()["head"] == {
        **head,
        "repo": None,
        "user": None,
        "label": "unknown repository:main",
    }


def test_commits_are_found_by_branch_tag_and_the_beginning_of_their_name(fake, ask):
    pull, commits = from_fork(fake), f"{REPO}/commits"
    main = repository(fake).branches["main"]
    repository(fake).branches["feature/fast"] = repository(fake).tags["v1"] = main
    for ref in ("main", "heads/main", "v1", "tags/v1", "feature/fast", "heads/feature%2Ffast", main, main[:7]):
        assert ask("GET", f"{commits}/{ref}").json()["sha"] == main, ref
    assert ask("GET", f"{commits}/{pull.last_commit}").json()["parents"][0]["sha"] == main
    for ref in ("nowhere", "heads/v1", "f" * 40, main[:3]):
        assert said(ask("GET", f"{commits}/{ref}")) == (422, f"No commit found for SHA: {ref}")


def test_two_commits_are_compared_from_where_they_part(fake, ask):
    world, there = fake.world, repository(fake)
    start = there.branches["main"]
    base, head = world.push(there, "main"), world.push(there, "faster", start)
    compared = ask("GET", f"{REPO}/compare/main...faster").json()
    assert compared["merge_base_commit"]["sha"] == start
    assert (compared["status"], compared["ahead_by"], compared["behind_by"]) == ("diverged", 1, 1)
    merged = world.push(there, "faster", head, base)
    assert ask("GET", f"{REPO}/compare/main...{merged}").json()["merge_base_commit"]["sha"] == base
    assert ask("GET", f"{REPO}/compare/main...main").json()["status"] == "identical"
    there.commits["0" * 40] = ()
    assert said(ask("GET", f"{REPO}/compare/main...{'0' * 40}"))[1].startswith("No common ancestor")
    assert said(ask("GET", f"{REPO}/compare/main...nowhere")) == (404, "Not Found")


# Who may


@pytest.mark.parametrize("role", ["read", "triage", "write", "maintain", "admin"])
def test_the_role_of_an_account_is_told_in_full_and_in_four_words(fake, ask, role):
    fake.world.add_account("Someone")
    repository(fake).roles["Someone"] = role
    told = ask("GET", f"{REPO}/collaborators/someone/permission", job_token(fake)).json()
    older = {"triage": "read", "maintain": "write"}.get(role, role)
    assert (told["role_name"], told["permission"], told["user"]["login"]) == (role, older, "Someone")


def test_only_who_may_push_is_told_a_role_and_nobody_has_none_in_what_is_public(fake, ask):
    path = "collaborators/reader/permission"
    assert said(ask("GET", f"{REPO}/{path}", "reader")) == (
        403,
        "Must have push access to view collaborator permission.",
    )
    assert ask("GET", f"{REPO}/{path}").json()["permission"] == "read"
    assert ask("GET", f"repos/Torch-Owner/secret/{path}", "Torch-Owner").json()["permission"] == "none"
    assert said(ask("GET", f"{REPO}/collaborators/nobody/permission")) == (404, "nobody is not a user")


def test_a_team_is_there_for_its_organisation_only_and_not_for_a_job(fake, ask):
    fake.world.add_account("torch", "Organization")
    team = fake.world.add_team("torch/perf-crew", "writer")
    team.members["reader"] = "pending"
    path = "orgs/torch/teams/perf-crew"
    assert ask("GET", path).json()["slug"] == "perf-crew"
    assert ask("GET", f"{path}/memberships/Writer").json()["state"] == "active"
    assert ask("GET", f"{path}/memberships/reader").json()["state"] == "pending"
    assert said(ask("GET", f"{path}/memberships/Torch-Owner")) == (404, "Not Found")
    assert said(ask("GET", path, "Torch-Owner")) == (404, "Not Found")
    assert said(ask("GET", path, job_token(fake, issues="write"))) == REFUSED
    assert ask("GET", path, job_token(fake, "app", members="read")).status_code == 200


# What is written


def test_the_right_to_write_pull_requests_is_enough_to_comment_on_one_and_not_on_an_issue(fake, ask):
    opened(fake)
    ask("POST", f"{REPO}/issues", title="an issue")
    job = job_token(fake, pull_requests="write")
    made = ask("POST", f"{REPO}/issues/1/comments", job, body="x")
    assert made.status_code == 201
    assert ask("PATCH", f"{REPO}/issues/comments/{made.json()['id']}", job, body="y").json()["body"] == "y"
    assert said(ask("POST", f"{REPO}/issues/2/comments", job, body="x")) == REFUSED


def test_on_a_locked_issue_only_who_may_write_comments(fake, ask):
    ask("POST", f"{REPO}/issues", title="heated")
    repository(fake).table(Issue)[1].locked = True
    for token in ("reader", job_token(fake, issues="write")):
        refused = ask("POST", f"{REPO}/issues/1/comments", token, body="x")
        assert said(refused) == (403, "Unable to create comment because issue is locked.")
    assert ask("POST", f"{REPO}/issues/1/comments", body="x").status_code == 201
    assert ask("GET", f"{REPO}/issues/1").json()["locked"] is True


def test_a_reaction_is_one_of_each_kind_from_an_account(fake, ask):
    opened(fake)
    comment = ask("POST", f"{REPO}/issues/1/comments", body="x").json()["id"]
    path, job = f"{REPO}/issues/comments/{comment}/reactions", job_token(fake, pull_requests="write")
    answers = [ask("POST", path, job, content=content) for content in ("eyes", "eyes", "rocket")]
    assert [answer.status_code for answer in answers] == [201, 200, 201]
    assert [one["content"] for one in ask("GET", path).json()] == ["eyes", "rocket"]
    assert ask("POST", path, job, content="shrug").status_code == 422
    assert said(ask("POST", path, job_token(fake, "other", contents="write"), content="eyes")) == REFUSED
    assert said(ask("POST", f"{REPO}/issues/comments/99/reactions", job, content="eyes")) == (404, "Not Found")


def test_check_runs_are_made_by_apps_and_changed_by_the_one_that_made_them(fake, ask):
    job, head = job_token(fake, checks="write"), repository(fake).branches["main"]
    new = {"name": "torchbench", "head_sha": head, "external_id": "k", "status": "queued"}
    assert said(ask("POST", f"{REPO}/check-runs", **new)) == (403, "You must authenticate via a GitHub App.")
    assert said(ask("POST", f"{REPO}/check-runs", job_token(fake, "no"), **new)) == REFUSED
    made = ask("POST", f"{REPO}/check-runs", job, **new, output={"title": "t", "summary": "s"}).json()
    assert (made["status"], made["external_id"], made["app"]["slug"]) == ("queued", "k", "github-actions")
    path = f"{REPO}/check-runs/{made['id']}"
    assert ask("PATCH", path, job, status="completed").status_code == 422, "it says no conclusion"
    ended = ask("PATCH", path, job, status="completed", conclusion="neutral").json()
    assert (ended["conclusion"], ended["output"]["title"]) == ("neutral", "t")
    other = ask("POST", f"{REPO}/check-runs", job, **(new | {"external_id": "l"})).json()
    listing = f"{REPO}/commits/{head}/check-runs?check_name=torchbench"
    assert [one["id"] for one in ask("GET", listing).json()["check_runs"]] == [other["id"]]
    every = ask("GET", f"{listing}&filter=all&per_page=1")
    assert every.json()["total_count"] == 2 and "next" in every.links
    fake.world.add_account("other[bot]", "Bot")
    fake.world.add_token(Token("o", "other[bot]", "installation", (("checks", "write"),), ("Torch-Owner/nightlies",)))
    assert said(ask("PATCH", path, "o", status="queued"))[0] == 403
    assert ask("POST", f"{REPO}/check-runs", job, **(new | {"head_sha": "f" * 40})).status_code == 422


def test_a_workflow_is_dispatched_with_its_inputs_looked_at_and_cancelled(fake, ask):
    workflows.add_workflow(
        fake.world, repository(fake), "bisect.yml", {"signal": True, "good": False}, "bisect {signal}"
    )
    workflows.add_workflow(fake.world, repository(fake), "ci.yml")
    job, path = job_token(fake, actions="write"), f"{REPO}/actions/workflows/bisect.yml/dispatches"
    assert said(ask("POST", path, "reader", ref="main", inputs={"signal": "x"}))[0] == 403
    assert said(ask("POST", path, job_token(fake, "no"), ref="main", inputs={"signal": "x"})) == REFUSED
    assert said(ask("POST", path, job, ref="gone", inputs={"signal": "x"})) == (422, "No ref found for: gone")
    assert said(ask("POST", path, job, ref="main", inputs={"sginal": "x"}))[1].startswith("Unexpected inputs")
    assert said(ask("POST", path, job, ref="main"))[1] == "Required input 'signal' not provided"
    assert said(ask("POST", path.replace("bisect", "ci"), job, ref="main"))[0] == 422
    assert said(ask("POST", path.replace("bisect", "gone"), job, ref="main")) == (404, "Not Found")
    assert ask("POST", path, job, ref="main", inputs={"signal": "x"}).status_code == 204
    (run,) = ask("GET", f"{REPO}/actions/workflows/bisect.yml/runs?event=workflow_dispatch").json()["workflow_runs"]
    assert (run["display_title"], run["status"], run["actor"]["login"]) == ("bisect x", "queued", "github-actions[bot]")
    path = f"{REPO}/actions/runs/{run['id']}"
    assert ask("POST", f"{path}/cancel", job).status_code == 202
    assert said(ask("POST", f"{path}/cancel", job)) == (409, "Cannot cancel a workflow run that is completed.")
    assert ask("GET", path).json()["conclusion"] == "cancelled"
    assert said(ask("POST", f"{path}/cancel", "reader"))[0] == 403


def test_a_run_tells_which_step_its_jobs_are_at(fake, ask):
    there = repository(fake)
    workflow = workflows.add_workflow(fake.world, there, "benchmark.yml")
    run = workflows.add_run(fake.world, there, workflow, fake.world.account("writer"), "plan", "measure")
    run.jobs[0].status, run.jobs[0].conclusion = "completed", "success"
    run.jobs[1].steps = [workflows.Step("Build", "completed", "success"), workflows.Step("Measure", "in_progress")]
    jobs = ask("GET", f"{REPO}/actions/runs/{run.id}/jobs").json()["jobs"]
    assert [(job["name"], job["status"]) for job in jobs] == [("plan", "completed"), ("measure", "queued")]
    assert [(step["name"], step["status"]) for step in jobs[1]["steps"]][1] == ("Measure", "in_progress")


# Names, events, Enterprise


def test_a_write_to_a_repository_by_its_former_name_is_led_on_and_not_done(fake, ask):
    repository(fake).former_names.add("torch-owner/old")
    answer = requests.post(
        f"{fake.url}/repos/torch-owner/old/issues",
        json={"title": "x"},
        headers={"Authorization": "Bearer writer"},
        allow_redirects=False,
        timeout=10,
    )
    assert answer.status_code == 307 and answer.headers["Location"].endswith("/issues")
    assert not repository(fake).table(Issue)


@pytest.mark.parametrize("on", ["a pull request", "an issue"])
def test_a_comment_sends_the_event_that_github_sends(fake, ask, on):
    if on == "a pull request":
        opened(fake)
    else:
        ask("POST", f"{REPO}/issues", title="x", labels=["torchbench"])
    payload = webhooks.comment(fake, repository(fake), 1, "reader", "/benchmark")
    assert (payload["action"], payload["comment"]["body"], payload["sender"]["login"]) == (
        "created",
        "/benchmark",
        "reader",
    )
    assert ("pull_request" in payload["issue"]) == (on == "a pull request")
    comment = repository(fake).table(Comment)[payload["comment"]["id"]]
    comment.body = "/benchmark help"
    assert webhooks.event_of(fake, repository(fake), comment, "edited", "/benchmark")["changes"]["body"]["from"]
    assert webhooks.event_of(fake, repository(fake), comment, "deleted")["action"] == "deleted"
    assert ask("GET", f"{REPO}/issues/1/comments").json()[0]["user"]["login"] == "reader"


def test_github_enterprise_has_its_api_below_a_path():
    with fake_github("/api/v3") as fake:
        furnish(fake)
        assert fake.url.endswith("/api/v3")
        assert asker(fake)("GET", REPO).json()["url"] == f"{fake.url}/{REPO}"
        assert requests.get(f"{fake.proxy.url}/{REPO}", timeout=10).status_code == 404
