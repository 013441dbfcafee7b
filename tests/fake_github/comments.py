"""Comments on issues and, as GitHub has them together, on pull requests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from githubkit_schemas.latest import models

from fake_github.issues import LONGEST_BODY, Issue, association, issue_of
from fake_github.refusals import invalid, must_administrate, not_found, too_long
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Account, as_time, node_id

ROUTES = Routes()
PATH = "/repos/{owner}/{repo}/issues"


@dataclass
class Comment:
    id: int
    issue: Issue
    body: str
    author: Account
    created_at: datetime
    updated_at: datetime


@ROUTES.add(f"GET {PATH}/{{number}}/comments", needs="issues: read", model=models.IssueComment, paged=True)
def list_comments(request: Request) -> Reply:
    issue = issue_of(request)
    return Reply([_shown(request, one) for one in _comments(request).values() if one.issue is issue])


@ROUTES.add(
    f"POST {PATH}/{{number}}/comments",
    needs="issues: write",
    body=models.ReposOwnerRepoIssuesIssueNumberCommentsPostBody,
    model=models.IssueComment,
)
def create_comment(request: Request) -> Reply:
    """Anybody who may read may comment."""
    issue = issue_of(request)
    body = _valid(request.body["body"])
    now = request.world.clock.now()
    comment = Comment(request.world.new_id(), issue, body, request.account, now, now)
    _comments(request)[comment.id] = comment
    issue.comments += 1
    issue.updated_at = now
    return Reply(_shown(request, comment), 201)


@ROUTES.add(f"GET {PATH}/comments/{{id}}", needs="issues: read", model=models.IssueComment)
def get_comment(request: Request) -> Reply:
    return Reply(_shown(request, _get(request)))


@ROUTES.add(
    f"PATCH {PATH}/comments/{{id}}",
    needs="issues: write",
    body=models.ReposOwnerRepoIssuesCommentsCommentIdPatchBody,
    model=models.IssueComment,
)
def update_comment(request: Request) -> Reply:
    comment = _get(request)
    _must_be_theirs(request, comment)
    comment.body = _valid(request.body["body"])
    comment.updated_at = request.world.clock.now()
    return Reply(_shown(request, comment))


@ROUTES.add(f"DELETE {PATH}/comments/{{id}}", needs="issues: write", model=None)
def delete_comment(request: Request) -> Reply:
    comment = _get(request)
    _must_be_theirs(request, comment)
    del _comments(request)[comment.id]
    comment.issue.comments -= 1
    return Reply(status=204)


def _comments(request: Request) -> dict[int, Comment]:
    return request.repository.table(Comment)


def _get(request: Request) -> Comment:
    comment = _comments(request).get(int(request.places["id"]))
    if comment is None:
        raise not_found()
    return comment


def _must_be_theirs(request: Request, comment: Comment) -> None:
    if comment.author is not request.account and not request.has_role("write"):
        raise must_administrate()


def _valid(body: str) -> str:
    if not body.strip():
        raise invalid("IssueComment", "body", "missing_field")
    too_long("IssueComment", "body", body, LONGEST_BODY)
    return body


def _shown(request: Request, comment: Comment) -> dict[str, Any]:
    issue = comment.issue
    kind = "pull" if issue.is_pull_request else "issues"
    page = f"https://github.com/{request.repository.full_name}/{kind}/{issue.number}"
    return {
        "id": comment.id,
        "node_id": node_id("IssueComment", comment.id),
        "url": f"{request.url}/issues/comments/{comment.id}",
        "html_url": f"{page}#issuecomment-{comment.id}",
        "issue_url": f"{request.url}/issues/{issue.number}",
        "body": comment.body,
        "user": shown(request, comment.author),
        "created_at": as_time(comment.created_at),
        "updated_at": as_time(comment.updated_at),
        "author_association": association(request, comment.author),
        "performed_via_github_app": None,
    }
