"""The repository itself, and as other things show it."""

from typing import Any

from githubkit_schemas.latest import models

from fake_github.access import Role
from fake_github.issues import Issue
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Repository, as_time, node_id

ROUTES = Routes()
_PARTS = {
    "archive_url": "{archive_format}{/ref}",
    "assignees_url": "assignees{/user}",
    "blobs_url": "git/blobs{/sha}",
    "branches_url": "branches{/branch}",
    "collaborators_url": "collaborators{/collaborator}",
    "comments_url": "comments{/number}",
    "commits_url": "commits{/sha}",
    "compare_url": "compare/{base}...{head}",
    "contents_url": "contents/{+path}",
    "contributors_url": "contributors",
    "deployments_url": "deployments",
    "downloads_url": "downloads",
    "events_url": "events",
    "forks_url": "forks",
    "git_commits_url": "git/commits{/sha}",
    "git_refs_url": "git/refs{/sha}",
    "git_tags_url": "git/tags{/sha}",
    "hooks_url": "hooks",
    "issue_comment_url": "issues/comments{/number}",
    "issue_events_url": "issues/events{/number}",
    "issues_url": "issues{/number}",
    "keys_url": "keys{/key_id}",
    "labels_url": "labels{/name}",
    "languages_url": "languages",
    "merges_url": "merges",
    "milestones_url": "milestones{/number}",
    "notifications_url": "notifications{?since,all,participating}",
    "pulls_url": "pulls{/number}",
    "releases_url": "releases{/id}",
    "stargazers_url": "stargazers",
    "statuses_url": "statuses/{sha}",
    "subscribers_url": "subscribers",
    "subscription_url": "subscription",
    "tags_url": "tags",
    "teams_url": "teams",
    "trees_url": "git/trees{/sha}",
}
_ABSENT = ("mirror_url", "homepage", "language", "license")
_NONE_OF = ("forks_count", "stargazers_count", "watchers_count", "size")
_NOT = ("has_projects", "has_wiki", "has_pages", "has_discussions", "disabled")
RIGHTS: dict[str, Role] = {
    "pull": "read",
    "triage": "triage",
    "push": "write",
    "maintain": "maintain",
    "admin": "admin",
}


@ROUTES.add("GET /repos/{owner}/{repo}", needs="metadata: read", model=models.FullRepository)
def get_repository(request: Request) -> Reply:
    return Reply(
        {
            **whole(request, request.repository),
            **dict.fromkeys(("subscribers_count", "network_count"), 0),
            "permissions": {right: request.has_role(role) for right, role in RIGHTS.items()},
        }
    )


def minimal(request: Request, repository: Repository) -> dict[str, Any]:
    """A repository as a workflow's run shows it."""
    url = f"{request.base_url}/repos/{repository.full_name}"
    return {
        "id": repository.id,
        "node_id": node_id("Repository", repository.id),
        "name": repository.name,
        "full_name": repository.full_name,
        "owner": shown(request, repository.owner),
        "private": repository.private,
        "html_url": f"https://github.com/{repository.full_name}",
        "description": None,
        "fork": repository.fork_of is not None,
        "url": url,
        **{name: f"{url}/{part}" for name, part in _PARTS.items()},
    }


def whole(request: Request, repository: Repository) -> dict[str, Any]:
    """A repository as a pull request shows it, and an event."""
    page = f"github.com/{repository.full_name}"
    created = as_time(repository.created_at)
    open_issues = sum(issue.state == "open" for issue in repository.table(Issue).values())
    return {
        **minimal(request, repository),
        "visibility": "private" if repository.private else "public",
        "git_url": f"git://{page}.git",
        "ssh_url": f"git@github.com:{repository.full_name}.git",
        "clone_url": f"https://{page}.git",
        "svn_url": f"https://{page}",
        **dict.fromkeys(_ABSENT),
        **dict.fromkeys((*_NONE_OF, "forks", "watchers"), 0),
        **dict.fromkeys(_NOT, False),
        "has_issues": repository.has_issues,
        "archived": repository.is_archived,
        "open_issues": open_issues,
        "open_issues_count": open_issues,
        "default_branch": repository.default_branch,
        "pushed_at": as_time(repository.pushed_at),
        "created_at": created,
        "updated_at": created,
    }
