"""Pull requests. Each is an issue too, whose state is its own; its head is gone once the head repository is deleted."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from githubkit_schemas.latest import models

from fake_github.issues import Issue, association
from fake_github.refusals import not_found
from fake_github.repository import whole
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Account, Repository, World, as_time, node_id

ROUTES = Routes()
_LINKS = {
    "comments": "issues/{number}/comments",
    "commits": "pulls/{number}/commits",
    "issue": "issues/{number}",
    "review_comment": "pulls/comments{{/number}}",
    "review_comments": "pulls/{number}/comments",
    "self": "pulls/{number}",
    "statuses": "statuses/{head}",
}
_ONLY_WHOLE = (
    *("merged", "mergeable", "rebaseable", "mergeable_state", "merged_by", "comments", "maintainer_can_modify"),
    *("commits", "review_comments", "additions", "deletions", "changed_files"),
)
_COUNTS = ("review_comments", "additions", "deletions", "changed_files")


@dataclass
class PullRequest:
    id: int
    issue: Issue
    base: str  # branch
    base_commit: str  # as it was when the pull request last changed
    head: str  # branch
    head_repository: Repository
    last_commit: str  # of the head; it stays when the branch is deleted
    merged_by: Account | None = None

    @property
    def number(self) -> int:
        return self.issue.number


def open_pull_request(
    world: World,
    repository: Repository,
    author: str,
    head: str,
    head_repository: Repository | None = None,
    base: str | None = None,
    title: str = "a change",
    body: str | None = None,
) -> PullRequest:
    """One from a branch `head`, which must be there."""
    source, target = head_repository or repository, base or repository.default_branch
    number, now = repository.next_number(), world.clock.now()
    issue = Issue(world.new_id(), number, title, body, world.account(author), now, now, is_pull_request=True)
    pull = PullRequest(world.new_id(), issue, target, repository.branches[target], head, source, source.branches[head])
    repository.table(Issue)[number] = issue
    repository.table(PullRequest)[number] = pull
    return pull


def close(world: World, pull: PullRequest, merged_by: str | None = None) -> None:
    pull.issue.state, pull.issue.closed_at = "closed", world.clock.now()
    if merged_by is not None:
        pull.issue.merged_at, pull.merged_by = pull.issue.closed_at, world.account(merged_by)


@ROUTES.add("GET /repos/{owner}/{repo}/pulls/{number}", needs="pull_requests: read", model=models.PullRequest)
def get_pull(request: Request) -> Reply:
    pull = request.repository.table(PullRequest).get(int(request.places["number"]))
    if pull is None:
        raise not_found()
    return Reply(_shown(request, pull))


@ROUTES.add(
    "GET /repos/{owner}/{repo}/commits/{ref}/pulls",
    needs="pull_requests: read",
    model=models.PullRequestSimple,
    paged=True,
)
def pulls_of_commit(request: Request) -> Reply:
    """Those whose head the commit is."""
    pulls = request.repository.table(PullRequest).values()
    found = [_shown(request, one) for one in pulls if head_of(request.world, one) == request.places["ref"]]
    return Reply([{name: value for name, value in one.items() if name not in _ONLY_WHOLE} for one in found])


def head_of(world: World, pull: PullRequest) -> str:
    """The head's commit: of an open one, the end of its branch."""
    if pull.issue.state == "open" and pull.head_repository in world.repositories:
        pull.last_commit = pull.head_repository.branches.get(pull.head, pull.last_commit)
    return pull.last_commit


def _shown(request: Request, pull: PullRequest) -> dict[str, Any]:
    issue, number = pull.issue, pull.number
    head = head_of(request.world, pull)
    page = f"https://github.com/{request.repository.full_name}/pull/{number}"
    links = {name: f"{request.url}/{path.format(number=number, head=head)}" for name, path in _LINKS.items()}
    return {
        **{("url" if name == "self" else f"{name}_url"): url for name, url in links.items()},
        "_links": {name: {"href": url} for name, url in links.items()} | {"html": {"href": page}},
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "id": pull.id,
        "node_id": node_id("PullRequest", pull.id),
        "number": number,
        "state": issue.state,
        "locked": issue.locked,
        "active_lock_reason": issue.lock_reason,
        "title": issue.title,
        "user": shown(request, issue.author) or shown(request, request.world.ghost),
        "body": issue.body,
        "labels": [],
        "milestone": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        **_times(issue),
        "head": _end(request, pull.head_repository, pull.head, head),
        "base": _end(request, request.repository, pull.base, pull.base_commit),
        "author_association": association(request, issue.author),
        "auto_merge": None,
        "draft": False,
        "merged": issue.merged_at is not None,
        "mergeable": None,
        "rebaseable": None,
        "mergeable_state": "unknown",
        "merged_by": shown(request, pull.merged_by),
        "comments": issue.comments,
        "maintainer_can_modify": False,
        "commits": 1,
        **dict.fromkeys(_COUNTS, 0),
    }


def _times(issue: Issue) -> dict[str, str | None]:
    times: dict[str, datetime | None] = {
        "created_at": issue.created_at,
        "updated_at": issue.updated_at,
        "closed_at": issue.closed_at,
        "merged_at": issue.merged_at,
    }
    return {name: as_time(time) for name, time in times.items()}


def _end(request: Request, repository: Repository, branch: str, commit: str) -> dict[str, Any]:
    there = repository in request.world.repositories
    return {
        "label": f"{repository.owner.login}:{branch}" if there else f"unknown repository:{branch}",
        "ref": branch,
        "sha": commit,
        "user": shown(request, repository.owner) if there else None,
        "repo": whole(request, repository) if there else None,
    }
