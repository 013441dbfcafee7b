"""What the bot looks up on GitHub to answer a command. Reads only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

Role = Literal["none", "read", "triage", "write", "maintain", "admin"]
MAY_COMMAND: tuple[Role, ...] = ("write", "maintain", "admin")


@dataclass(frozen=True)
class PullRequest:
    """One, as it is at this moment."""

    number: int
    is_open: bool
    is_merged: bool
    author: str
    base_branch: str
    base: str  # commit of the base branch's end
    head: str  # commit
    head_repository: str | None  # OWNER/NAME; None: it was deleted
    head_pushed_at: datetime | None  # of that repository, of any branch


@dataclass(frozen=True)
class BotComment:
    """A comment that the bot itself has written."""

    id: int
    body: str
    created_at: datetime


@dataclass(frozen=True)
class WorkflowRun:
    """A run of a workflow, and what it is at."""

    id: int
    state: str  # queued, in_progress, completed, …
    url: str
    workflow: str = ""  # its file
    jobs: tuple[tuple[str, str, str], ...] = ()  # name, state, name of the step that is at work


class Looking(Protocol):
    """Everything raises BotError where GitHub does not answer."""

    def is_us(self, login: str) -> bool:
        """Whether the bot writes as that account."""
        ...

    def role(self, login: str) -> Role: ...
    def is_member(self, team: str, login: str) -> bool: ...
    def pull_request(self, number: int) -> PullRequest: ...
    def merge_base(self, base: str, head: str) -> str | None:
        """None if they have no commit in common, or one of them is not there."""
        ...

    def commit(self, revision: str) -> str | None:
        """The whole commit of a branch, a tag or the beginning of one; None if there is none."""
        ...

    def bot_comments(self, number: int) -> tuple[BotComment, ...]: ...
    def run(self, id: int) -> WorkflowRun | None: ...
