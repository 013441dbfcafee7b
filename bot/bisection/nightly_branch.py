"""The branch that a project's nightlies are made of. Each of its commits is one night; the commit of the main branch
that the night is made of stands in its message: `2026-01-05 nightly release (<sha>)`."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bot.bisection.git_range import run_git, top_of
from bot.errors import BotError
from torchbenchmark.foreign_text import one_line

BRANCHES = ("refs/remotes/origin/nightly", "refs/heads/nightly")
_NIGHT = re.compile(r"(\d{4}-\d{2}-\d{2}) nightly release \(([0-9a-f]{7,40})\)", re.ASCII)


@dataclass(frozen=True)
class Night:
    """A commit of the branch."""

    date: str
    commit: str
    main: str  # the full commit of the main branch
    subject: str


class NightlyBranch:
    """A clone with the branch in it. It is read, and never written."""

    def __init__(self, folder: Path) -> None:
        """Raises BotError for what is no repository, or has no such branch."""
        self.folder = top_of(folder, "--nightly-repo")
        there = (name for name in BRANCHES if self._git("rev-parse", "--verify", "--quiet", name).returncode == 0)
        branch = next(there, None)
        if branch is None:
            raise BotError(
                f"--nightly-repo {folder}: has no branch nightly, its own or of origin; fetch it, or leave this out"
            )
        shown = self._git("log", "--format=%H%x00%s", branch, "--").stdout
        self.nights: dict[str, Night] = {}
        for line in shown.splitlines():
            commit, _, subject = line.partition("\0")
            found = _NIGHT.match(subject)
            if found is not None and found[1] not in self.nights:  # the newest of a date comes first
                self.nights[found[1]] = Night(found[1], commit, found[2], one_line(subject))

    def night(self, date: str) -> Night | None:
        """The night of a date, its main commit in full; None if the branch has none, or the clone not that commit."""
        night = self.nights.get(date)
        if night is None:
            return None
        main = self._git("rev-parse", "--verify", "--quiet", f"{night.main}^{{commit}}").stdout.strip()
        return Night(night.date, night.commit, main, night.subject) if main else None

    def count(self, good: str, bad: str) -> int:
        """Commits of the main branch after the one and up to the other."""
        shown = self._git("rev-list", "--count", "--first-parent", f"{good}..{bad}").stdout.strip()
        return int(shown) if shown.isdigit() else 0

    def _git(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return run_git(self.folder, *arguments, check=False)
