"""What is looked up on GitHub to answer a command, as a Looking. Nothing is remembered: rights and commits are those of
the moment."""

import dataclasses
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, get_args
from urllib.parse import quote

from github import GithubException

from bot.errors import BotError
from bot.github.client import Client, NotGitHub, is_limit
from bot.github.credentials import TEAMS_TOKEN
from bot.github.looking import BotComment, PullRequest, Role, WorkflowRun

# What names in an address may be: others would make it another address.
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[bot\])?")
_TEAM = re.compile(r"([A-Za-z0-9-]+)/([A-Za-z0-9_-][A-Za-z0-9_.-]*)")
_NO_REVISION = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|^[-./]|[./]$")  # by Git's own rules of names
_LONGEST_REVISION = 250
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NOT_THERE = (404, 410)
_NO_COMMIT = (404, 409, 422)  # 409: the repository is empty
_SEES_TEAMS = (
    f"a job's own token sees none: set {TEAMS_TOKEN} to one that may read the organisation's members, or take the team "
    "out of `teams` in the configuration"
)

Result = TypeVar("Result")


class GitHubLooking:
    """See Looking."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def is_us(self, login: str) -> bool:
        with self.client.errors():
            return login.casefold() == self.client.login.casefold()

    def role(self, login: str) -> Role:
        """By a team, too. A role of an organisation's own making counts as the one that it was made from."""
        found = self._look(f"collaborators/{login}/permission", _role) if _LOGIN.fullmatch(login) else None
        return found or "none"  # there is no account of that name

    def is_member(self, team: str, login: str) -> bool:
        """Not of one that has only been invited. Raises BotError, too, for a team that the token may not see: all its
        members would seem to be none."""
        name = _TEAM.fullmatch(team)
        if name is None:
            raise self._error(f"{team!r} is no team; write ORGANISATION/TEAM")
        if not _LOGIN.fullmatch(login):
            return False
        address = f"/orgs/{name[1]}/teams/{name[2]}"
        unseen = f"there is no team {team}, or the token may not see it; {_SEES_TEAMS}"
        state = self._look(f"{address}/memberships/{login}", lambda told: told["state"], refused=unseen)
        if state is None and self._look(address, lambda told: told["slug"], refused=unseen) is None:
            raise self._error(unseen)
        return state == "active"

    def pull_request(self, number: int) -> PullRequest:
        found = self._look(f"pulls/{number}", _pull_request)
        if found is None:
            raise self._error(f"there is no pull request #{number}, or the token may not see it")
        # What the pull request itself says of its base is as old as its last change; the branch may be deleted since.
        return dataclasses.replace(found, base=self.commit(f"heads/{found.base_branch}") or found.base)

    def merge_base(self, base: str, head: str) -> str | None:
        for commit in (base, head):
            if not _COMMIT.fullmatch(commit):
                raise self._error(f"{commit[:60]!r} is not the whole name of a commit")
        path = f"compare/{base}...{head}?per_page=1"
        return self._look(path, lambda told: _commit(told["merge_base_commit"]["sha"]))

    def commit(self, revision: str) -> str | None:
        """Also one that only a fork has: forks and what they were forked from have their commits together."""
        if not revision or len(revision) > _LONGEST_REVISION or _NO_REVISION.search(revision):
            return None
        return self._look(f"commits/{quote(revision)}?per_page=1", lambda told: _commit(told["sha"]), but=_NO_COMMIT)

    def bot_comments(self, number: int) -> tuple[BotComment, ...]:
        with self.client.errors():
            self.client.connect()
            try:
                return tuple(
                    BotComment(one["id"], one["body"] or "", datetime.fromisoformat(one["created_at"]))
                    for one in self.client.comments(number)
                )
            except GithubException as error:
                if error.status not in _NOT_THERE:
                    raise
                raise self._error(
                    f"there is no issue or pull request #{number}, or the token may not see it"
                ) from error

    def run(self, id: int) -> WorkflowRun | None:
        found = self._look(
            f"actions/runs/{id}",
            lambda told: (told["id"], str(told["status"]), told["html_url"], str(told.get("path") or "")),
        )
        if found is None:
            return None
        return WorkflowRun(*found, jobs=self._look(f"actions/runs/{id}/jobs?per_page=100", _jobs) or ())

    def _look(
        self, path: str, read: Callable[[Any], Result], but: tuple[int, ...] = _NOT_THERE, refused: str = ""
    ) -> Result | None:
        """What `read` takes from the answer; None where GitHub says that it is not there. `refused`: what a refusal
        means."""
        with self.client.errors():
            _ = self.client.repo  # or a repository that is not there would seem to be one without it
            try:
                return self.client.repeat(lambda: read(self.client.request("GET", path)[1]))
            except GithubException as error:
                if error.status in but:
                    return None
                if refused and error.status in (401, 403) and not is_limit(error):
                    raise self._error(refused) from error
                raise

    def _error(self, text: str) -> BotError:
        return BotError(f"GitHub, {self.client.repository}: {text}")


def _role(told: Any) -> Role:
    for name in (told["role_name"], told["permission"]):
        if name in get_args(Role):
            return name
    return "none"


def _pull_request(told: Any) -> PullRequest:
    source = told["head"]["repo"]
    return PullRequest(
        number=int(told["number"]),
        is_open=told["state"] == "open",
        is_merged=bool(told["merged"]),
        author=(told["user"] or {}).get("login", ""),
        base_branch=str(told["base"]["ref"]),
        base=_commit(told["base"]["sha"]),
        head=_commit(told["head"]["sha"]),
        head_repository=source["full_name"] if source else None,
        head_pushed_at=datetime.fromisoformat(source["pushed_at"]) if source and source["pushed_at"] else None,
    )


def _jobs(told: Any) -> tuple[tuple[str, str, str], ...]:
    return tuple((job["name"], str(job["status"]), _step_at_work(job)) for job in told["jobs"])


def _step_at_work(job: Any) -> str:
    return next((step["name"] for step in job.get("steps") or () if step["status"] == "in_progress"), "")


def _commit(name: Any) -> str:
    if not isinstance(name, str) or not _COMMIT.fullmatch(name):
        raise NotGitHub
    return name
