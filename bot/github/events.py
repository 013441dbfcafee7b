"""Events of GitHub, as far as the bot heeds them: a comment that was just written below an issue or a pull request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.series import UtcTime
from bot.errors import BotError
from torchbenchmark.yaml_files import first_problem


class _Part(BaseModel):
    """A payload has a hundred more keys, and may have new ones tomorrow."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class User(_Part):
    login: str
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        return self.type == "Bot" or self.login.casefold().endswith("[bot]")


class Comment(_Part):
    id: int = Field(ge=1)
    body: str | None = ""
    user: User | None
    created_at: UtcTime


class Issue(_Part):
    number: int = Field(ge=1)
    state: str
    body: str | None = ""
    user: User | None = None
    locked: bool = False
    pull_request: dict[str, Any] | None = None


class Repository(_Part):
    full_name: str
    default_branch: str = "main"


class CommentEvent(_Part):
    """A new comment."""

    comment: Comment
    issue: Issue
    repository: Repository

    @property
    def is_on_pull_request(self) -> bool:
        return self.issue.pull_request is not None


@dataclass(frozen=True)
class Ignored:
    """An event that asks nothing of the bot."""

    why: str


def read_event(name: str, payload: Mapping[str, Any]) -> CommentEvent | Ignored:
    """The event, or why it is none for the bot. Raises BotError for a comment without what every comment has."""
    if name != "issue_comment":
        return Ignored(f"the bot does not heed {name}")
    if payload.get("action") != "created":
        return Ignored("only what a new comment says is heeded, not an edited or a deleted one")
    try:
        event = CommentEvent.model_validate(payload)
    except ValidationError as error:
        raise BotError(f"the payload of {name}: {first_problem(error)}; is it an event of GitHub?") from error
    if event.comment.user is None or event.comment.user.is_bot:
        return Ignored("a bot, or a deleted account, has written it")
    return event
