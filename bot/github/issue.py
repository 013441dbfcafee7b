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
    "performance improvement": "0e8a16",
    "count change": "c5def5",
    "environment change": "bfdadc",
    "nightly missing": "fbca04",
}
# Hidden, and once more where it is read: a person who edits an issue may take one of them out.
_KEY = re.compile(
    r"<!-- torchbench-alert: ([0-9a-f]{16}) -->|^<sub>torchbench alert `([0-9a-f]{16})`</sub>$", re.MULTILINE
)
_OCCASION = re.compile(r"<!-- torchbench-occasion: (.*?) -->")
_REVISION = re.compile(r"<!-- torchbench-revision: ([0-9]{1,15}) -->")

Effect = Literal[
    "created",
    "updated",
    "unchanged",
    "left closed",
    "left open",
    "left: it is newer",
    "to be filed",
    "to be closed if open",
]


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
    # Grows with what is known: an older one, of a job that was started again or came late, changes nothing.
    revision: int = 0


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


def as_filed(issue: Issue) -> str:
    """The body with what the bot finds and judges it by later; none of that is shown but the key."""
    state = "open" if issue.is_open else "closed"
    return (
        f"{hidden_key(issue.key)} <!-- torchbench-occasion: {issue.occasion} --> "
        f"<!-- torchbench-revision: {issue.revision} --> <!-- torchbench-state: {state} -->\n"
        f"{issue.body.rstrip()}\n\n"
        f"<sub>torchbench alert `{issue.key}`</sub>\n"
    )


def key_in(text: str | None) -> str | None:
    """The key in the text of an issue."""
    found = _KEY.search(text or "")
    return (found[1] or found[2]) if found else None


def occasion_in(text: str | None) -> str | None:
    """The occasion that is hidden in a text; None if a person has taken it out."""
    found = _OCCASION.search(text or "")
    return found[1] if found else None


def revision_in(text: str | None) -> int:
    """The revision that is hidden in a text, else 0."""
    found = _REVISION.search(text or "")
    return int(found[1]) if found else 0


def without_revision(text: str | None) -> str:
    """The text as it is compared: a number alone is no news."""
    return _REVISION.sub("", text or "")
