"""Reactions to comments. One of a kind from each account; it is given back when it is made again."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from githubkit_schemas.latest import models

from fake_github.comments import PATH, Comment, comment_of
from fake_github.refusals import Refusal
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Account, as_time, node_id

ROUTES = Routes()


@dataclass
class Reaction:
    id: int
    comment: Comment
    author: Account
    content: str
    created_at: datetime


@ROUTES.add(
    f"POST {PATH}/comments/{{id}}/reactions",
    needs="issues: write or pull_requests: write",
    body=models.ReposOwnerRepoIssuesCommentsCommentIdReactionsPostBody,
    model=models.Reaction,
)
def create_reaction(request: Request) -> Reply:
    comment = comment_of(request)
    if not comment.issue.is_pull_request:
        request.require("issues", "write")
    if comment.issue.locked and not request.has_role("write"):
        raise Refusal(403, "Issue is locked")
    for one in _of(request, comment):
        if one.author is request.account and one.content == request.body["content"]:
            return Reply(_shown(request, one))
    made = Reaction(
        request.world.new_id(), comment, request.account, request.body["content"], request.world.clock.now()
    )
    request.repository.table(Reaction)[made.id] = made
    return Reply(_shown(request, made), 201)


@ROUTES.add(
    f"GET {PATH}/comments/{{id}}/reactions",
    needs="issues: read or pull_requests: read",
    model=models.Reaction,
    paged=True,
)
def list_reactions(request: Request) -> Reply:
    return Reply([_shown(request, one) for one in _of(request, comment_of(request))])


def _of(request: Request, comment: Comment) -> list[Reaction]:
    return [one for one in request.repository.table(Reaction).values() if one.comment is comment]


def _shown(request: Request, reaction: Reaction) -> dict[str, Any]:
    return {
        "id": reaction.id,
        "node_id": node_id("Reaction", reaction.id),
        "user": shown(request, reaction.author),
        "content": reaction.content,
        "created_at": as_time(reaction.created_at),
    }
