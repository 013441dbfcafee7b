"""A file of issues to be filed: what a job that may read the store leaves for one that may write issues."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bot.errors import BotError
from bot.github.issue import BOT_LABEL, LABEL_COLOURS, STATE_LABELS, Filed, Issue, Recorded, Tracker
from bot.pages.comment_length import LONGEST_COMMENT
from bot.whole_file import write_whole
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1


MOST_ISSUES = 500
MOST_REVISIONS = 10**15
MOST_COMMENTS = 20
LONGEST_RECORD = 30_000
_KEY = re.compile(r"[0-9a-f]{16}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_RECORD = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def _fit(issue: Issue) -> Issue:
    """An issue as the bot makes them; the file may have come from a job that ran others' code."""
    if not _KEY.fullmatch(issue.key):
        raise ValueError("a key is 16 hexadecimal digits")
    if issue.labels[:1] != (BOT_LABEL,) or not set(issue.labels) <= set(LABEL_COLOURS):
        raise ValueError(f"labels are {BOT_LABEL}, first, and others of: {', '.join(LABEL_COLOURS)}")
    if len(set(issue.labels) & set(STATE_LABELS)) > 1:
        raise ValueError("an alert has one state")
    said = [*issue.comments, *([("0" * 16, issue.culprit[1])] if issue.culprit else [])]
    if len(said) > MOST_COMMENTS or not all(_KEY.fullmatch(key) and len(text) <= LONGEST_COMMENT for key, text in said):
        raise ValueError(f"comments are at most {MOST_COMMENTS}, each with a key and of {LONGEST_COMMENT} characters")
    if issue.culprit is not None and not _COMMIT.fullmatch(issue.culprit[0]):
        raise ValueError("a commit is 7 to 64 hexadecimal digits")
    if len(issue.record) > LONGEST_RECORD or not _RECORD.fullmatch(issue.record):
        raise ValueError(f"a record is base64 of at most {LONGEST_RECORD} characters")
    if not 0 <= issue.revision < MOST_REVISIONS:
        raise ValueError("a revision is a whole number from 0 on")
    for text in (issue.title, issue.occasion, *issue.labels):
        if not text.isprintable():
            raise ValueError("a title is one line of plain text")
    if "-->" in issue.occasion:
        raise ValueError("an occasion ends no comment")
    return issue


class _Issues(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["issues"] = "issues"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    issues: Annotated[tuple[Annotated[Issue, AfterValidator(_fit)], ...], Field(max_length=MOST_ISSUES)]


class IssueFile:
    """Takes issues as a Tracker does, and keeps them. It is written at once, so that there is one also of no issue."""

    def __init__(self, path: Path, known: Tracker | None = None) -> None:
        """`known`: the tracker in which another job will file them, if this one may read it."""
        self.path, self._known = path, known
        self._issues: dict[str, Issue] = {}
        self._write()

    def put(self, issue: Issue) -> Filed:
        """See Tracker. Of one that is put twice the newer counts."""
        if issue.key not in self._issues or self._issues[issue.key].revision <= issue.revision:
            self._issues[issue.key] = issue
        self._write()
        return Filed(issue.key, issue.title, str(self.path), "to be filed" if issue.is_open else "to be closed if open")

    def recorded(self) -> tuple[Recorded, ...]:
        """See Tracker."""
        return () if self._known is None else self._known.recorded()

    def _write(self) -> None:
        content = _Issues(issues=tuple(self._issues.values())).model_dump_json(by_alias=True, indent=1) + "\n"
        write_whole(self.path, content.encode())


def read_issues(path: Path) -> tuple[Issue, ...]:
    """The issues in a file. Raises BotError naming the file and what is wrong in it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BotError(f"{path}: cannot be read: {error.strerror}") from error
    return issues_in(content, str(path))


def issues_in(content: bytes, where: str) -> tuple[Issue, ...]:
    """The issues in the content of a file. Raises BotError."""
    try:
        return _Issues.model_validate_json(content).issues
    except ValidationError as error:
        raise BotError(f"{where}: {first_problem(error)}; make it with `torchbench conclude --issues`") from error
