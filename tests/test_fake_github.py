"""The fake of GitHub refuses, pages, limits and spells as GitHub does, and lets no mistake pass in silence.

Asked with plain requests: PyGithub would hide what is looked at here.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import requests
from fake_github import FakeGitHub, Token, fake_github
from fake_github.issues import Issue
from fake_github.validation import mistake_in_answer
from githubkit_schemas.latest import models

REPO = "repos/Torch-Owner/nightlies"
Ask = Callable[..., requests.Response]


@pytest.fixture
def fake():
    with fake_github() as fake:
        furnish(fake)
        yield fake


@pytest.fixture
def ask(fake) -> Ask:
    return asker(fake)


def furnish(fake: FakeGitHub) -> None:
    world = fake.world
    for login in ("Torch-Owner", "writer", "reader"):
        world.add_account(login)
        world.add_token(Token(login, login))
    world.add_account("github-actions[bot]", "Bot")
    world.add_repository("Torch-Owner/nightlies", roles={"writer": "write"})
    world.add_repository("Torch-Owner/secret", private=True)


def asker(fake: FakeGitHub) -> Ask:
    def ask(
        method: str, path: str, token: str | None = "writer", headers: dict[str, str] | None = None, **body: object
    ):
        return requests.request(
            method,
            f"{fake.url}/{path}",
            headers={**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})},
            data=json.dumps(body) if body else None,
            timeout=10,
        )

    return ask


def said(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["message"]


def first_error(answer: requests.Response) -> dict[str, Any]:
    assert said(answer) == (422, "Validation Failed")
    return answer.json()["errors"][0]


def job_token(fake: FakeGitHub, value: str = "job", **permissions: str) -> str:
    token = Token(value, "github-actions[bot]", "installation", tuple(permissions.items()), ("Torch-Owner/nightlies",))
    return fake.world.add_token(token).value


# Who may do what


def test_an_unknown_token_may_not_even_read_what_is_public(ask):
    assert said(ask("GET", REPO, "guessed")) == (401, "Bad credentials")
    assert ask("GET", REPO, None).status_code == 200


def test_without_a_token_nothing_is_written(ask):
    assert said(ask("POST", f"{REPO}/issues", None, title="x")) == (401, "Requires authentication")
    assert said(ask("GET", "user", None)) == (401, "Requires authentication")


def test_a_private_repository_is_not_there_for_who_may_not_see_it(fake, ask):
    for token in ("reader", job_token(fake, issues="write"), None):
        assert said(ask("GET", "repos/Torch-Owner/secret", token)) == (404, "Not Found")
        assert said(ask("POST", "repos/Torch-Owner/secret/issues", token, title="x")) == (404, "Not Found")
    assert ask("GET", "repos/Torch-Owner/secret", "Torch-Owner").status_code == 200


def test_a_job_token_may_what_its_permissions_say_and_not_ask_who_it_is(fake, ask):
    reads, writes = job_token(fake, "reads", issues="read"), job_token(fake, "writes", issues="write")
    refused = (403, "Resource not accessible by integration")
    answer = ask("POST", f"{REPO}/issues", reads, title="x")
    assert said(answer) == refused
    assert answer.headers["X-Accepted-GitHub-Permissions"] == "issues=write"
    assert said(ask("GET", "user", writes)) == refused
    filed = ask("POST", f"{REPO}/issues", writes, title="x", labels=["torchbench"]).json()
    assert (filed["user"]["login"], filed["user"]["type"]) == ("github-actions[bot]", "Bot")
    assert [label["name"] for label in filed["labels"]] == ["torchbench"]


def test_a_fine_grained_token_is_refused_by_its_name(fake, ask):
    fake.world.add_token(Token("fine", "writer", "fine-grained", (("issues", "read"),), ("Torch-Owner/nightlies",)))
    assert said(ask("POST", f"{REPO}/issues", "fine", title="x")) == (
        403,
        "Resource not accessible by personal access token",
    )
    assert ask("GET", "user", "fine").json()["login"] == "writer"


def test_who_may_only_read_files_issues_whose_labels_are_dropped(ask):
    filed = ask("POST", f"{REPO}/issues", "reader", title="x", labels=["torchbench"])
    assert (filed.status_code, filed.json()["labels"]) == (201, [])
    assert ask("GET", f"{REPO}/labels").json() == []
    assert said(ask("POST", f"{REPO}/labels", "reader", name="x")) == (404, "Not Found")


def test_who_may_only_read_changes_only_their_own_issues_and_comments(ask):
    theirs = ask("POST", f"{REPO}/issues", title="x").json()["number"]
    mine = ask("POST", f"{REPO}/issues", "reader", title="x").json()["number"]
    refused = (403, "Must have admin rights to Repository.")
    assert said(ask("PATCH", f"{REPO}/issues/{theirs}", "reader", title="y")) == refused
    assert ask("PATCH", f"{REPO}/issues/{mine}", "reader", title="y").json()["title"] == "y"
    comment = ask("POST", f"{REPO}/issues/{mine}/comments", body="look").json()["id"]
    assert said(ask("PATCH", f"{REPO}/issues/comments/{comment}", "reader", body="no")) == refused
    assert said(ask("DELETE", f"{REPO}/issues/comments/{comment}", "reader")) == refused


# What is valid


def test_an_issue_needs_a_title_and_has_a_longest_title_and_body(ask):
    issues = f"{REPO}/issues"
    assert said(ask("POST", issues, body="x")) == (422, 'Invalid request.\n\n"title" wasn\'t supplied.')
    assert ask("POST", issues, title=["x"]).status_code == 422
    assert first_error(ask("POST", issues, title=" ")) == {
        "resource": "Issue",
        "field": "title",
        "code": "missing_field",
    }
    assert ask("POST", issues, title="t" * 256, body="ü" * 65_536).status_code == 201
    assert (
        first_error(ask("POST", issues, title="t" * 257))["message"] == "title is too long (maximum is 256 characters)"
    )
    error = first_error(ask("POST", issues, title="t", body="x" * 65_537))
    assert error["message"] == "body is too long (maximum is 65536 characters)"
    assert first_error(ask("PATCH", f"{issues}/1", body="x" * 65_537)) == error
    assert len(ask("GET", issues).json()) == 1


def test_a_label_is_one_in_any_case_and_keeps_its_spelling(ask):
    assert ask("POST", f"{REPO}/labels", name="TorchBench", color="5319E7").json()["color"] == "5319e7"
    assert first_error(ask("POST", f"{REPO}/labels", name="torchbench", color="5319e7"))["code"] == "already_exists"
    assert ask("GET", f"{REPO}/labels/TORCHBENCH").json()["name"] == "TorchBench"
    filed = ask("POST", f"{REPO}/issues", title="x", labels=["torchbench", "a/b c"]).json()
    assert [label["name"] for label in filed["labels"]] == ["TorchBench", "a/b c"]
    assert ask("GET", f"{REPO}/labels/a%2Fb%20c").json()["color"] == "ededed"
    assert len(ask("GET", f"{REPO}/issues?labels=torchbench,A/B%20C").json()) == 1
    assert len(ask("GET", f"{REPO}/issues?labels=torchbench,other").json()) == 0


@pytest.mark.parametrize(
    ("label", "field", "code"),
    [
        ({"name": "x", "color": "#5319e7"}, "color", "invalid"),
        ({"name": " ", "color": "5319e7"}, "name", "missing_field"),
        ({"name": "n" * 51, "color": "5319e7"}, "name", "custom"),
        ({"name": "x", "color": "5319e7", "description": "d" * 101}, "description", "custom"),
    ],
)
def test_a_label_that_is_not_valid_is_refused_and_not_made(ask, label, field, code):
    error = first_error(ask("POST", f"{REPO}/labels", **label))
    assert (error["field"], error["code"]) == (field, code)
    assert ask("GET", f"{REPO}/labels").json() == []


def test_where_issues_are_turned_off_only_pull_requests_are_listed(fake, ask):
    for title in ("an issue", "a pull request"):
        ask("POST", f"{REPO}/issues", title=title)
    repository = fake.world.repository("torch-owner", "nightlies")
    repository.table(Issue)[2].is_pull_request = True
    repository.has_issues = False
    gone = (410, "Issues has been disabled in this repository.")
    assert said(ask("POST", f"{REPO}/issues", title="x")) == gone
    assert said(ask("GET", f"{REPO}/issues/1")) == gone
    assert said(ask("PATCH", f"{REPO}/issues/1", title="x")) == gone
    assert said(ask("POST", f"{REPO}/issues/1/comments", body="x")) == gone
    (listed,) = ask("GET", f"{REPO}/issues").json()
    assert listed["pull_request"]["url"] == f"{fake.url}/{REPO}/pulls/2"
    assert ask("GET", REPO).json()["has_issues"] is False


def test_a_repository_that_was_renamed_is_led_to_and_an_archived_one_only_read(fake, ask):
    repository = fake.world.repository("torch-owner", "nightlies")
    repository.former_names.add("torch-owner/old")
    answer = ask("GET", "repos/torch-owner/Old/issues?state=all")
    assert answer.history[0].status_code == 301 and answer.json() == []
    assert answer.url == f"{fake.url}/repositories/{repository.id}/issues?state=all"
    repository.is_archived = True
    assert said(ask("POST", f"{REPO}/issues", title="x")) == (403, "Repository was archived so is read-only.")
    assert ask("GET", REPO).json()["archived"] is True


def test_a_body_that_is_no_json_is_told_from_a_request_that_is_not_valid(fake):
    answer = requests.post(
        f"{fake.url}/{REPO}/issues", data="{title", headers={"Authorization": "Bearer writer"}, timeout=10
    )
    assert said(answer) == (400, "Problems parsing JSON")


# What an issue says of itself


def test_only_the_issue_itself_says_who_closed_it_and_why(fake, ask):
    ask("POST", f"{REPO}/issues", title="x")
    fake.world.clock.advance(60)
    closed = ask("PATCH", f"{REPO}/issues/1", "Torch-Owner", state="closed").json()
    assert (closed["state_reason"], closed["closed_by"]["login"]) == ("completed", "Torch-Owner")
    assert closed["closed_at"] == closed["updated_at"] > closed["created_at"]
    (listed,) = ask("GET", f"{REPO}/issues?state=closed").json()
    assert "closed_by" not in listed
    opened = ask("PATCH", f"{REPO}/issues/1", state="open").json()
    assert (opened["state_reason"], opened["closed_by"], opened["closed_at"]) == ("reopened", None, None)
    assert (
        ask("PATCH", f"{REPO}/issues/1", state="closed", state_reason="not_planned").json()["state_reason"]
        == "not_planned"
    )


def test_only_a_change_moves_the_time_by_which_issues_are_listed(fake, ask):
    for title in ("old", "touched", "patched alike"):
        ask("POST", f"{REPO}/issues", title=title)
    fake.world.clock.advance(3_600)
    since = ask("POST", f"{REPO}/issues", title="new").json()["created_at"]
    ask("POST", f"{REPO}/issues/2/comments", body="touched")
    ask("PATCH", f"{REPO}/issues/3", title="patched alike")
    assert [one["title"] for one in ask("GET", f"{REPO}/issues?since={since}").json()] == ["new", "touched"]
    assert ask("GET", f"{REPO}/issues/2").json()["comments"] == 1
    newest_last = ask("GET", f"{REPO}/issues?sort=updated&direction=asc").json()
    assert {one["title"] for one in newest_last[:2]} == {"old", "patched alike"}
    assert first_error(ask("GET", f"{REPO}/issues?state=shut"))["field"] == "state"
    assert first_error(ask("GET", f"{REPO}/issues?since=yesterday"))["field"] == "since"


@pytest.mark.parametrize("ghost", [False, True])
def test_what_a_deleted_account_wrote_stays_without_an_author(fake, ask, ghost):
    if ghost:
        fake.world.ghost = fake.world.add_account("ghost")
    ask("POST", f"{REPO}/issues", "reader", title="x")
    ask("POST", f"{REPO}/issues/1/comments", "reader", body="x")
    fake.world.delete_account("reader")
    authors = [
        ask("GET", f"{REPO}/issues").json()[0]["user"],
        ask("GET", f"{REPO}/issues/1/comments").json()[0]["user"],
    ]
    assert [author and author["login"] for author in authors] == (["ghost"] * 2 if ghost else [None] * 2)
    assert said(ask("GET", "users/reader")) == (404, "Not Found")


def test_names_are_found_in_any_case_and_answered_as_they_are_spelled(ask):
    assert ask("GET", "repos/TORCH-OWNER/Nightlies").json()["full_name"] == "Torch-Owner/nightlies"
    assert ask("GET", "users/torch-owner").json()["login"] == "Torch-Owner"
    ask("POST", f"{REPO}/issues", "Torch-Owner", title="x")
    assert len(ask("GET", f"{REPO}/issues?creator=TORCH-owner").json()) == 1
    assert ask("GET", f"{REPO}/issues?creator=writer").json() == []


def test_comments_are_written_read_changed_and_taken_back(ask):
    ask("POST", f"{REPO}/issues", title="x")
    comment = ask("POST", f"{REPO}/issues/1/comments", "reader", body="first").json()
    assert comment["html_url"].endswith(f"/issues/1#issuecomment-{comment['id']}")
    path = f"{REPO}/issues/comments/{comment['id']}"
    assert ask("PATCH", path, "reader", body="second").json()["body"] == "second"
    assert ask("GET", path).json()["body"] == "second"
    assert first_error(ask("PATCH", path, body=" "))["field"] == "body"
    assert first_error(ask("PATCH", path, body="x" * 65_537))["code"] == "custom"
    assert ask("DELETE", path).status_code == 204
    assert said(ask("GET", path)) == (404, "Not Found")
    assert ask("GET", f"{REPO}/issues/1/comments").json() == []
    assert said(ask("GET", f"{REPO}/issues/99")) == (404, "Not Found")


# Pages, tags and limits


def test_pages_are_led_through_by_links_that_name_the_repository_by_its_id(fake, ask):
    for number in range(5):
        ask("POST", f"{REPO}/issues", title=str(number))
    url, titles = f"{REPO}/issues?state=all&per_page=2", []
    while url:
        answer = ask("GET", url)
        titles.append([one["title"] for one in answer.json()])
        url = answer.links.get("next", {}).get("url", "").removeprefix(f"{fake.url}/")
    assert titles == [["4", "3"], ["2", "1"], ["0"]]
    assert set(answer.links) == {"prev", "first"}
    repository = fake.world.repository("torch-owner", "nightlies")
    assert answer.links["first"]["url"] == f"{fake.url}/repositories/{repository.id}/issues?state=all&per_page=2&page=1"
    assert "Link" not in ask("GET", f"{REPO}/issues?per_page=100").headers
    assert said(ask("GET", "repositories/1/issues")) == (404, "Not Found")


def test_what_has_not_changed_is_not_sent_again_and_not_counted(ask):
    first = ask("GET", f"{REPO}/issues")
    again = ask("GET", f"{REPO}/issues", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["X-RateLimit-Remaining"] == first.headers["X-RateLimit-Remaining"] == "4999"
    ask("POST", f"{REPO}/issues", title="x")
    assert ask("GET", f"{REPO}/issues", headers={"If-None-Match": first.headers["ETag"]}).status_code == 200


def test_a_token_whose_budget_is_used_up_waits_for_the_hour_to_pass(fake, ask):
    fake.limits.use_up("writer", for_s=90)
    answer = ask("GET", REPO)
    assert answer.status_code == 403 and answer.json()["message"].startswith("API rate limit exceeded for user ID")
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    assert int(answer.headers["X-RateLimit-Reset"]) == pytest.approx(fake.world.clock.time() + 90, abs=3)
    assert ask("GET", REPO, "reader").status_code == 200
    fake.world.clock.advance(91)
    assert ask("GET", REPO).headers["X-RateLimit-Remaining"] == "4999"


def test_a_secondary_limit_strikes_writes_and_nothing_is_written(fake, ask):
    fake.limits.strike_writes(retry_after=7)
    fake.limits.strike_writes(retry_after=None)
    assert ask("GET", f"{REPO}/issues").json() == []
    first, second = (ask("POST", f"{REPO}/issues", title="x") for _ in range(2))
    assert (first.status_code, first.headers["Retry-After"]) == (403, "7")
    assert "secondary rate limit" in second.json()["message"] and "Retry-After" not in second.headers
    assert ask("GET", f"{REPO}/issues").json() == []


# Mistakes


@pytest.mark.parametrize(
    ("request_", "mistake"),
    [
        (("POST", f"{REPO}/issues", {"title": "x", "label": ["y"]}), "GitHub ignores the field label"),
        (("POST", f"{REPO}/issues", {"title": "x", "labels": [{"nom": "y"}]}), r"GitHub ignores the field labels.nom"),
        (("GET", f"{REPO}/issues?status=closed", {}), "the fake does not know the parameter status"),
        (("GET", f"{REPO}/issues", {"state": "closed"}), "GitHub ignores a body there"),
        (("GET", f"{REPO}/milestones", {}), "the fake does not have it"),
    ],
)
def test_a_request_that_github_would_half_ignore_fails_the_test(request_, mistake):
    method, path, body = request_
    with pytest.raises(AssertionError, match=mistake), fake_github() as fake:
        furnish(fake)
        asker(fake)(method, path, **body)


def test_an_answer_that_github_would_not_give_fails_the_test():
    mistake = r"none of GitHub's: For '0/title': Input should be a valid string"
    with pytest.raises(AssertionError, match=mistake), fake_github() as fake:
        furnish(fake)
        ask = asker(fake)
        ask("POST", f"{REPO}/issues", title="x")
        fake.world.repository("torch-owner", "nightlies").table(Issue)[1].title = None  # type: ignore[assignment]
        ask("GET", f"{REPO}/issues")


def test_an_answer_with_a_field_that_github_does_not_have_is_a_mistake(ask):
    label = ask("POST", f"{REPO}/labels", name="x").json()
    assert mistake_in_answer(label, models.Label) is None
    assert mistake_in_answer([label | {"colour": "red"}], list[models.Label]) == "GitHub has no field colour there"


def test_a_fake_that_breaks_fails_the_test():
    with pytest.raises(AssertionError, match=r"the fake broke:\n(.|\n)*AttributeError"), fake_github() as fake:
        furnish(fake)
        fake.world.repository("torch-owner", "nightlies").table(Issue)[1] = None  # type: ignore[assignment]
        assert asker(fake)("GET", f"{REPO}/issues").status_code == 418


def test_a_test_that_fails_by_itself_also_tells_the_mistakes():
    with pytest.raises(ZeroDivisionError) as failed, fake_github() as fake:
        furnish(fake)
        asker(fake)("POST", f"{REPO}/issues", title="x", label="y")
        raise ZeroDivisionError
    assert "ignores the field label" in failed.value.__notes__[0]
