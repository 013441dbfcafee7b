"""Commits: looked up by branch, tag or the beginning of their name, and compared. A fork has them together with what it
was forked from."""

import re
from collections.abc import Iterator
from typing import Any

from githubkit_schemas.latest import models

from fake_github.refusals import Refusal, not_found
from fake_github.routing import Reply, Request, Routes
from fake_github.world import Repository, as_time, node_id

ROUTES = Routes()
_SHA = re.compile(r"[0-9a-f]{4,40}")
_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the empty one


@ROUTES.add(
    "GET /repos/{owner}/{repo}/commits/{ref}", needs="contents: read", model=models.Commit, query=("page", "per_page")
)
def get_commit(request: Request) -> Reply:
    ref = request.places["ref"]
    commit = resolved(request.repository, ref)
    if commit is None:
        raise Refusal(422, f"No commit found for SHA: {ref}")
    return Reply(_shown(request, commit))


@ROUTES.add(
    "GET /repos/{owner}/{repo}/compare/{basehead}",
    needs="contents: read",
    model=models.CommitComparison,
    query=("page", "per_page"),
)
def compare(request: Request) -> Reply:
    left, dots, right = request.places["basehead"].partition("...")
    base, head = (resolved(request.repository, ref) for ref in (left, right))
    if not dots or base is None or head is None:
        raise not_found()
    commits = request.repository.commits
    of_base, of_head = (set(_history(commits, commit)) for commit in (base, head))
    common = next((one for one in _history(commits, head) if one in of_base), None)
    if common is None:
        raise Refusal(404, f"No common ancestor between {left} and {right}.")
    ahead, behind = len(of_head - of_base), len(of_base - of_head)
    status = ("diverged" if behind else "ahead") if ahead else ("behind" if behind else "identical")
    page = f"https://github.com/{request.repository.full_name}/compare/{left}...{right}"
    return Reply(
        {
            "url": f"{request.url}/compare/{left}...{right}",
            "html_url": page,
            "permalink_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "base_commit": _shown(request, base),
            "merge_base_commit": _shown(request, common),
            "status": status,
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
            "commits": [_shown(request, one) for one in _history(commits, head) if one not in of_base][::-1],
            "files": [],
        }
    )


def resolved(repository: Repository, ref: str) -> str | None:
    """The commit of `heads/BRANCH`, `tags/TAG`, a branch, a tag, or the beginning of a commit's name."""
    kind, _, name = ref.partition("/")
    if kind in ("heads", "tags"):
        return (repository.branches if kind == "heads" else repository.tags).get(name)
    if found := repository.branches.get(ref) or repository.tags.get(ref):
        return found
    alike = [commit for commit in repository.commits if _SHA.fullmatch(ref) and commit.startswith(ref)]
    return alike[0] if len(alike) == 1 else None


def _history(commits: dict[str, tuple[str, ...]], newest: str) -> Iterator[str]:
    """Commits from the newest on, nearest first; of several ways to one, all are as long in these histories."""
    seen, queue = {newest}, [newest]
    while queue:
        yield (commit := queue.pop(0))
        new = [parent for parent in commits[commit] if parent not in seen]
        seen.update(new)
        queue += new


def _shown(request: Request, commit: str) -> dict[str, Any]:
    url, page = f"{request.url}/commits", f"https://github.com/{request.repository.full_name}/commit"
    who = {"name": "A. U. Thor", "email": "author@example.com", "date": as_time(request.repository.created_at)}
    return {
        "sha": commit,
        "node_id": node_id("Commit", 0),
        "url": f"{url}/{commit}",
        "html_url": f"{page}/{commit}",
        "comments_url": f"{url}/{commit}/comments",
        "commit": {
            "url": f"{request.url}/git/commits/{commit}",
            "author": who,
            "committer": who,
            "message": "a commit",
            "comment_count": 0,
            "tree": {"sha": _TREE, "url": f"{request.url}/git/trees/{_TREE}"},
        },
        "author": None,
        "committer": None,
        "parents": [
            {"sha": parent, "url": f"{url}/{parent}", "html_url": f"{page}/{parent}"}
            for parent in request.repository.commits[commit]
        ],
    }
