"""The outbox: a folder of Markdown files that stands in for the issue tracker. One file per alert, found again by the
key hidden in it, whatever its name."""

import dataclasses
import os
import re
from pathlib import Path

from bot.errors import BotError
from bot.github.issue import Filed, Issue, as_filed, key_in, revision_in, without_revision


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
                if without_revision(there) == without_revision(content):
                    return Filed(issue.key, issue.title, str(path), "unchanged")
            target = path or self.folder / f"{_slug(issue.title)}-{issue.key[:8]}.md"
            scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            scratch.write_text(content, encoding="utf-8")
            scratch.replace(target)
        except OSError as error:
            raise BotError(f"{self.folder}: the outbox cannot be written: {error.strerror}") from error
        return Filed(issue.key, issue.title, str(target), "updated" if path else "created")

    def _find(self, key: str) -> Path | None:
        for path in sorted(self.folder.glob("*.md")):
            if key_in(path.read_text(encoding="utf-8", errors="replace")) == key:
                return path
        return None


def _as_file(issue: Issue) -> str:
    state = "open" if issue.is_open else "closed"
    labels = ", ".join(f"`{label}`" for label in issue.labels)
    return as_filed(dataclasses.replace(issue, body=f"# {issue.title}\n\n*{state}* · {labels}\n\n{issue.body}"))


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].rstrip("-")
