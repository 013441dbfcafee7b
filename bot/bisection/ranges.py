"""What a range is that a bisection goes along: commits (git_range.py), releases (release_range.py) or dates
(date_range.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.bisection.document import Noun
from bot.bisection.git_range import CommitFacts


@dataclass(frozen=True)
class FollowUp:
    """Where a change can be narrowed further: the commits that its date brought, and how to bisect them."""

    names: tuple[str, ...]  # the dates that the change lies in
    good: str  # commits of the main branch
    bad: str
    commits: int
    command: str  # for a shell


class Range(Protocol):
    """A line of names from a good end to a bad one, whose builds have an address each."""

    noun: Noun
    good: str
    bad: str
    line: Sequence[str]

    def settle(self, begun: Sequence[str] | None) -> None:
        """Fix the line: what a bisection was begun with stays, however an index has changed since. Without one, as it
        is now. Raises BotError if the ends are not there."""

    @property
    def subjects(self) -> Mapping[str, str]:
        """What a name is told with, on one line."""

    def facts(self, name: str) -> CommitFacts: ...

    def branches(self, name: str) -> list[list[str]]:
        """Lines of their own that came in with a name: those of a merge."""

    def is_merge(self, name: str) -> bool: ...

    def touched(self, line: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The paths that each name of a line after its first one touched, as far as that is known."""

    def address(self, name: str) -> str:
        """Of the build."""

    def prepare(self, name: str) -> str:
        """Make ready what its build needs and its address does not give. Returns why there can be no build, as far as
        that is known without making one; else an empty line."""

    def follow_up(self, names: tuple[str, ...]) -> FollowUp | None:
        """How to narrow further what no build tells apart; None if that is not known."""


class Linear:
    """Of a range without a history of commits: nothing branches off, and nothing is known of files."""

    def is_merge(self, name: str) -> bool:
        return False

    def touched(self, line: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {}

    def branches(self, name: str) -> list[list[str]]:
        return []
