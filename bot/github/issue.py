"""An issue as the bot files it, and what a tracker of issues must offer."""

import hashlib
import re
from dataclasses import dataclass
from typing import Literal, Protocol

BOT_LABEL = "torchbench"  # marks every issue of the bot
LABEL_COLOURS = {
    BOT_LABEL: "5319e7",
    "performance regression": "d93f0b",
    "newly failing": "b60205",
    "nightly missing": "fbca04",
}
_HIDDEN_KEY = re.compile(r"<!-- torchbench-alert: ([0-9a-f]{16}) -->")
_HIDDEN_OCCASION = re.compile(r"<!-- torchbench-occasion: (.*?) -->")

Effect = Literal["created", "updated", "unchanged", "left closed", "to be filed", "to be closed if open"]


@dataclass(frozen=True)
class Issue:
    """An issue as it is filed."""

    key: str
    title: str
    body: str
    labels: tuple[str, ...]  # the first one is BOT_LABEL
    is_open: bool
    # What it was opened for, if the same issue serves several times. A person who closes it has decided for this time.
    occasion: str = ""


@dataclass(frozen=True)
class Filed:
    """What came of filing one."""

    key: str
    title: str
    where: str  # the file, or the address of the issue
    effect: Effect


class Tracker(Protocol):
    """Where issues are filed: the same key is the same issue, whatever its title has become."""

    def put(self, issue: Issue) -> Filed | None:
        """Create the issue, or update the one that has its key. None if it is closed and was never filed.

        Raises BotError if it cannot be written.
        """


def key_of(*identity: str) -> str:
    """The key of what is identified so: the same for the same, in every run."""
    return hashlib.sha256("|".join(identity).encode()).hexdigest()[:16]


def hidden_key(key: str) -> str:
    """The comment by which an issue is recognised; it is not shown."""
    return f"<!-- torchbench-alert: {key} -->"


def key_in(text: str | None) -> str | None:
    """The key that is hidden in a text."""
    found = _HIDDEN_KEY.search(text or "")
    return found[1] if found else None


def hidden_occasion(occasion: str) -> str:
    """The comment that says what the issue was opened for; it is not shown."""
    return f"<!-- torchbench-occasion: {occasion} -->"


def occasion_in(text: str | None) -> str:
    """The occasion that is hidden in a text."""
    found = _HIDDEN_OCCASION.search(text or "")
    return found[1] if found else ""
