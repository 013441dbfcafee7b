"""What a command is: a pure parser of its words, and a handler that says what is to be done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from baselines.store import Store
from bot.config import NightlyConfig
from bot.github.actions import Action
from bot.github.events import CommentEvent
from bot.github.looking import MAY_COMMAND, Looking
from bot.github.permission import may_command

Place = Literal["pull request", "alert"]
Asked = TypeVar("Asked")


@dataclass(unsafe_hash=True)  # not frozen: an exception on its way out is written to
class WrongUse(Exception):
    """Words that the command does not take: what is wrong, and what is valid instead. Answered, never a crash."""

    problem: str
    valid: str

    def __str__(self) -> str:
        return f"{self.problem}; {self.valid}"


@dataclass(unsafe_hash=True)
class Refused(Exception):
    """A command that was understood and is not done."""

    why: str
    what_to_do: str = ""

    def __str__(self) -> str:
        return f"{self.why}{f'; {self.what_to_do}' if self.what_to_do else ''}"


@dataclass(frozen=True)
class Conversation:
    """What a handler may use: the event, the configuration, and what can be looked up. It writes nothing on GitHub."""

    event: CommentEvent
    config: NightlyConfig
    look: Looking  # reads GitHub
    open_store: Callable[[], Store]
    now: datetime
    by: str  # the login of who has written it
    run: int | None = None  # of the workflow that answers, where it is one
    run_url: str = ""

    @property
    def may_command(self) -> bool:
        """Whether who has written it may command, as it is now."""
        return may_command(self.look, self.by, self.config.pull_requests.teams)


@dataclass(frozen=True)
class Command(Generic[Asked]):
    """`/name words…`, at one place. `usage`: the lines that `/help` shows."""

    name: str
    place: Place
    usage: tuple[str, ...]
    parse: Callable[[Sequence[str]], Asked]  # raises WrongUse
    handle: Callable[[Asked, Conversation], Sequence[Action]]  # raises Refused, or WrongUse where the limits say so
    is_for_all: bool = False  # also for those who may not command: it only tells

    def answer(self, words: Sequence[str], conversation: Conversation) -> Sequence[Action]:
        """Raises WrongUse, and Refused, also for who may not command, which is looked up at this moment."""
        asked: Any = self.parse(words)
        if not self.is_for_all:
            _require_permission(conversation)
        return self.handle(asked, conversation)


def _require_permission(conversation: Conversation) -> None:
    if not conversation.may_command:
        raise not_permitted(conversation.config.pull_requests.teams)


def not_permitted(teams: Sequence[str]) -> Refused:
    """What somebody is told who may not command."""
    *others, last = MAY_COMMAND
    listed = ", or is in a team that the configuration lists" if teams else ""
    return Refused(
        "you may not command the bot here",
        f"ask somebody who may: whose role in this repository is {', '.join(others)} or {last}{listed}",
    )
