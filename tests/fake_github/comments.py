"""Comments on issues and, as GitHub has them together, on pull requests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from githubkit_schemas.latest import models

from fake_github.issues import LONGEST_BODY, Issue, association, issue_of
from fake_github.refusals import Refusal, invalid, must_administrate, not_found, too_long
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Account, as_time, node_id

ROUTES = Routes()
PATH = "/repos/{owner}/{repo}/issues"
_READ, _WRITE = (f"issues: {level} or pull_requests: {level}" for level in ("read", "write"))


@dataclass
class Comment:
    id: int
    issue: Issue
    body: str
    author: Account
    created_at: datetime
    updated_at: datetime


@ROUTES.add(f"GET {PATH}/{{number}}/comments", needs=_READ, model=models.IssueComment, paged=True)
def list_comments(request: Request) -> Reply:
    issue = issue_of(request)
    return Reply([shown_comment(request, one) for one in _comments(request).values() if one.issue is issue])


@ROUTES.add(
    f"POST {PATH}/{{number}}/comments",
    needs=_WRITE,
    body=models.ReposOwnerRepoIssuesIssueNumberCommentsPostBody,
    model=models.IssueComment,
)
def create_comment(request: Request) -> Reply:
    """Anybody who may read may comment, while the issue is not locked."""
    issue = issue_of(request)
    _must_reach(request, issue)
    if issue.locked and (not request.has_role("write") or (request.token and request.token.kind == "installation")):
        raise Refusal(403, "Unable to create comment because issue is locked.")
    return Reply(
        shown_comment(request, add_comment(request, issue, request.account, _valid(request.body["body"]))), 201
    )


def add_comment(request: Request, issue: Issue, author: Account, body: str) -> Comment:
    now = request.world.clock.now()
    comment = Comment(request.world.new_id(), issue, body, author, now, now)
    _comments(request)[comment.id] = comment
    issue.comments += 1
    issue.updated_at = now
    return comment


@ROUTES.add(f"GET {PATH}/comments/{{id}}", needs=_READ, model=models.IssueComment)
def get_comment(request: Request) -> Reply:
    return Reply(shown_comment(request, comment_of(request)))


@ROUTES.add(
    f"PATCH {PATH}/comments/{{id}}",
    needs=_WRITE,
    body=models.ReposOwnerRepoIssuesCommentsCommentIdPatchBody,
    model=models.IssueComment,
)
def update_comment(request: Request) -> Reply:
    comment = comment_of(request)
    _must_be_theirs(request, comment)
    comment.body = _valid(request.body["body"])
    comment.updated_at = request.world.clock.now()
    return Reply(shown_comment(request, comment))


@ROUTES.add(f"DELETE {PATH}/comments/{{id}}", needs=_WRITE, model=None)
def delete_comment(request: Request) -> Reply:
    comment = comment_of(request)
    _must_be_theirs(request, comment)
    del _comments(request)[comment.id]
    comment.issue.comments -= 1
    return Reply(status=204)


def _comments(request: Request) -> dict[int, Comment]:
    return request.repository.table(Comment)


def comment_of(request: Request) -> Comment:
    """The comment that the path names."""
    comment = _comments(request).get(int(request.places["id"]))
    if comment is None:
        raise not_found()
    return comment


def _must_reach(request: Request, issue: Issue) -> None:
    """The right to write pull requests is one for those only."""
    if not issue.is_pull_request:
        request.require("issues", "write")


def _must_be_theirs(request: Request, comment: Comment) -> None:
    _must_reach(request, comment.issue)
    if comment.author is not request.account and not request.has_role("write"):
        raise must_administrate()


def _valid(body: str) -> str:
    if not body.strip():
        raise invalid("IssueComment", "body", "missing_field")
    too_long("IssueComment", "body", body, LONGEST_BODY)
    return body


def shown_comment(request: Request, comment: Comment) -> dict[str, Any]:
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
