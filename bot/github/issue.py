"""An issue as the bot files it, and what a tracker of issues must offer."""

import hashlib
import re
from dataclasses import dataclass
from typing import Literal, Protocol

BOT_LABEL = "torchbench"  # marks every issue of the bot
# The state of an alert is one of these. They are the bot's, and replaced; all other labels are people's.
STATE_LABELS = {
    "alert: filed": "e4e669",
    "alert: culprit found": "d876e3",
    "alert: acknowledged": "0075ca",
    "alert: snoozed": "cfd3d7",
    "alert: expected": "c2e0c6",
    "alert: noise": "cfd3d7",
    "alert: merged": "cfd3d7",
    "alert: recovered": "c2e0c6",
    "alert: over": "cfd3d7",
    "alert: relapsed": "d93f0b",
}
LABEL_COLOURS = {
    BOT_LABEL: "5319e7",
    "performance regression": "d93f0b",
    "newly failing": "b60205",
    "performance improvement": "0e8a16",
    "count change": "c5def5",
    "environment change": "bfdadc",
    "nightly missing": "fbca04",
    **STATE_LABELS,
}
# Hidden, and once more where it is read: a person who edits an issue may take one of them out. All stand where no text
# of others can: at the beginning of a line, after nothing but their like. What others wrote is one line of code.
_FIRST = r"^(?:<!-- torchbench-[a-z]+: (?:(?!-->)[^\n])*--> ?)*"
_KEY = re.compile(
    rf"{_FIRST}<!-- torchbench-alert: ([0-9a-f]{{16}}) -->|^<sub>torchbench alert `([0-9a-f]{{16}})`</sub>[ \r]*$",
    re.MULTILINE,
)
_OCCASION = re.compile(rf"{_FIRST}<!-- torchbench-occasion: (.*?) -->", re.MULTILINE)
_TOLD = re.compile(rf"{_FIRST}<!-- torchbench-told: ([0-9a-f ]*) -->", re.MULTILINE)
_RECORD = re.compile(r"^<!-- torchbench-record: ([A-Za-z0-9+/=]+) -->", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- torchbench-comment: ([0-9a-f]{16}) -->", re.MULTILINE)
_REVISION = re.compile(r"<!-- torchbench-revision: ([0-9]{1,15}) -->")
_REVISION_FIRST = re.compile(_FIRST + _REVISION.pattern, re.MULTILINE)

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
    comments: tuple[tuple[str, str], ...] = ()  # (key, Markdown): what people need to know, each posted once
    record: str = ""  # hidden in it: what an alert is made from again if the store has lost it
    culprit: tuple[str, str] | None = None  # (commit, Markdown): told once on the pull request that brought it
    not_planned: bool = False  # closed without anything mended


@dataclass(frozen=True)
class Recorded:
    """What an issue that the tracker has keeps of its alert."""

    key: str
    record: str
    revision: int
    where: str


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

        Comments are posted once each, on an issue that is open or is closed now: none on a new one, which tells all,
        and none where a person has closed it.

        Raises BotError if it cannot be written.
        """

    def recorded(self) -> tuple[Recorded, ...]:
        """What the bot's issues keep of their alerts: of those that are open, or were touched lately.

        Raises BotError if they cannot be read.
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
    keys = [key for key, _ in issue.comments] + ([culprit_key(issue)] if issue.culprit else [])
    told = f" <!-- torchbench-told: {' '.join(keys)} -->" if keys else ""
    record = f"<!-- torchbench-record: {issue.record} -->\n" if issue.record else ""
    return (
        f"{hidden_key(issue.key)} <!-- torchbench-occasion: {issue.occasion} --> "
        f"<!-- torchbench-revision: {issue.revision} --> <!-- torchbench-state: {state} -->{told}\n"
        f"{issue.body.rstrip()}\n\n{record}"
        f"<sub>torchbench alert `{issue.key}`</sub>\n"
    )


def culprit_key(issue: Issue) -> str:
    """Of what is told on the culprit's pull request: once for each commit."""
    assert issue.culprit is not None
    return key_of(issue.key, "culprit", issue.culprit[0])


def as_comment(key: str, body: str) -> str:
    """A comment by which it is found again."""
    return f"<!-- torchbench-comment: {key} -->\n{body.rstrip()}\n"


def comments_in(text: str | None) -> list[str]:
    """The keys of the comments in a text."""
    return _COMMENT.findall(text or "")


def told_in(text: str | None) -> set[str]:
    """The keys of what was told already, as an issue has them; of one that a person has rewritten none."""
    found = _TOLD.search(text or "")
    return set(found[1].split()) if found else set()


def record_in(text: str | None) -> str:
    """What is hidden in the text of an issue to make its alert from again."""
    found = _RECORD.search(text or "")
    return found[1] if found else ""


def recorded_in(text: str | None, where: str) -> Recorded | None:
    """What an issue keeps of its alert; None if it keeps nothing."""
    key, record = key_in(text), record_in(text)
    return Recorded(key, record, revision_in(text), where) if key is not None and record else None


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
    found = _REVISION_FIRST.search(text or "")
    return int(found[1]) if found else 0


def without_revision(text: str | None) -> str:
    """The text as it is compared: a number alone is no news."""
    return _REVISION.sub("", text or "")
