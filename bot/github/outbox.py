"""The outbox: a folder of Markdown files that stands in for the issue tracker. One file per alert, found again by the
key hidden in it, whatever its name. Comments stand below the issue, each once."""

import dataclasses
import os
import re
from pathlib import Path

from bot.errors import BotError
from bot.github.issue import (
    Filed,
    Issue,
    Recorded,
    as_comment,
    as_filed,
    comments_in,
    key_in,
    recorded_in,
    revision_in,
    without_revision,
)

_COMMENTS = "\n---\n\n<!-- torchbench-comments -->\n"  # what stands below it is never taken away


class Outbox:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, issue: Issue) -> Filed | None:
        """See Tracker."""
        content = _as_file(issue)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self._find(issue.key)
            if path is None and not issue.is_open:
                return None
            if path is not None:
                there = path.read_text(encoding="utf-8")
                if revision_in(there) > issue.revision:
                    return Filed(issue.key, issue.title, str(path), "left: it is newer")
                content += _comments(there, issue)
                if without_revision(there) == without_revision(content):
                    return Filed(issue.key, issue.title, str(path), "unchanged")
            target = path or self.folder / f"{_slug(issue.title)}-{issue.key[:8]}.md"
            scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            scratch.write_text(content, encoding="utf-8")
            scratch.replace(target)
        except OSError as error:
            raise BotError(f"{self.folder}: the outbox cannot be written: {error.strerror}") from error
        return Filed(issue.key, issue.title, str(target), "updated" if path else "created")

    def recorded(self) -> tuple[Recorded, ...]:
        """See Tracker."""
        paths = sorted(self.folder.glob("*.md"))
        found = (recorded_in(path.read_text(encoding="utf-8", errors="replace"), str(path)) for path in paths)
        return tuple(one for one in found if one is not None)

    def _find(self, key: str) -> Path | None:
        for path in sorted(self.folder.glob("*.md")):
            if key_in(path.read_text(encoding="utf-8", errors="replace")) == key:
                return path
        return None


def _comments(there: str, issue: Issue) -> str:
    """The comments that a file has, and those that it lacks."""
    _, _, known = there.partition(_COMMENTS)
    new = [as_comment(key, body) for key, body in issue.comments if key not in comments_in(known)]
    whole = "\n".join([*([known] if known else []), *new])
    return f"{_COMMENTS}{whole}" if whole else ""


def _as_file(issue: Issue) -> str:
    state = "open" if issue.is_open else "closed"
    labels = ", ".join(f"`{label}`" for label in issue.labels)
    return as_filed(dataclasses.replace(issue, body=f"# {issue.title}\n\n*{state}* · {labels}\n\n{issue.body}"))


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].rstrip("-")
