"""The commits of a range, as a repository has them. Everything here reads: no file of the repository is written, not
even its index."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bot.bisection.document import Noun
from bot.bisection.merges import History, branches_of, first_parent_line
from bot.errors import BotError
from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.git import COMMIT, git_variables
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line, printable

MOST_STAT_LINES = 40  # of `git show --stat` that a report quotes
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=true")


@dataclass(frozen=True)
class CommitFacts:
    """What people are told of a commit. Foreign text, on single lines of bounded length."""

    commit: str
    subject: str
    author: str
    date: str
    stat: tuple[str, ...] = ()  # files that it touched


class GitRange:
    """A repository of this machine, and the history between two of its commits."""

    noun: Noun = "commit"

    def __init__(self, folder: Path, good: str, bad: str, wheels: str | None = None) -> None:
        """`wheels` is an address without its commit, where a project's CI leaves them; without it commits are built.

        Raises BotError for what is no repository, an unknown revision, or a good end that is not before the bad."""
        self.folder = top_of(folder)
        self.wheels = wheels
        self.good, self.bad = self._commit(good, "--good"), self._commit(bad, "--bad")
        self._require_wheels_of_commits()
        if self.good == self.bad:
            raise BotError(f"--good {good} and --bad {bad} are one commit, {self.good[:12]}: there is no range")
        if self._git("merge-base", "--is-ancestor", self.good, self.bad, check=False).returncode != 0:
            raise BotError(
                f"--good {good} ({self.good[:12]}) is not an ancestor of --bad {bad} ({self.bad[:12]}): a bisection "
                f"goes along one history; a good end may be {self._common()}"
            )
        self.history: History = self._history()
        self.line: list[str] = first_parent_line(self.history, self.good, self.bad)

    def settle(self, begun: Sequence[str] | None) -> None:
        """A history does not change."""

    def address(self, commit: str) -> str:
        return f"git:{self.folder}@{commit}" if self.wheels is None else f"{self.wheels}@{commit}"

    def prepare(self, commit: str) -> str:
        return ""  # a wheel that is not there is found to be missing as it is got

    def follow_up(self, names: tuple[str, ...]) -> None:
        """A commit is as narrow as it gets."""

    def is_merge(self, name: str) -> bool:
        return len(self.history[name]) > 1

    def branches(self, merge: str) -> list[list[str]]:
        """The lines that a merge brought in, each from where it left the main line, which may be before the range."""
        return branches_of(self.history, merge)

    def facts(self, commit: str) -> CommitFacts:
        """Subject, author, date and touched files of a commit; of a merge those that it changed of its first parent."""
        named = self._git("show", "--no-patch", "--format=%s%x00%an%x00%aI", commit).stdout.rstrip("\n").split("\0")
        subject, author, when = (*(one_line(part) for part in named), "", "", "")[:3]
        shown = self._git(
            "show", "--stat=100", "--format=", "--no-ext-diff", "--no-textconv", "--first-parent", "-m", commit
        )
        lines = [printable(line).replace("\t", " ")[:200] for line in shown.stdout.splitlines() if line.strip()]
        if len(lines) > MOST_STAT_LINES:
            lines = [*lines[: MOST_STAT_LINES - 2], " …", lines[-1]]
        return CommitFacts(commit, subject, author, when, tuple(lines))

    def paths(self, commit: str) -> list[str]:
        """The files that a commit touched, as git has them; of a merge those that it changed of its first parent."""
        shown = self._git(
            "show", "--name-only", "-z", "--format=", "--no-renames", "--no-ext-diff", "--first-parent", "-m", commit
        )
        return [path for path in shown.stdout.strip("\n").split("\0") if path]

    def text(self, commit: str, path: str, largest: int) -> str | None:
        """A file as it is in a commit; None if there is none, or it has more than `largest` bytes."""
        name = f"{commit}:{path}"
        size = self._git("cat-file", "-s", name, check=False).stdout.strip()
        if not size.isascii() or not size.isdigit() or int(size) > largest:
            return None
        shown = self._git("cat-file", "blob", name, check=False)
        return shown.stdout if shown.returncode == 0 else None

    @cached_property
    def subjects(self) -> dict[str, str]:
        """The first line of the message of each commit of the range, those of branches too."""
        shown = self._git("log", "--no-walk", "--format=%H%x00%s", self.good).stdout
        shown += self._git("log", "--format=%H%x00%s", self.bad, f"^{self.good}").stdout
        pairs = (line.partition("\0") for line in shown.splitlines())
        return {commit: one_line(subject) for commit, _, subject in pairs}

    def touched(self, line: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The paths that each commit of a line after its first one touched; of a merge, against its first parent."""
        shown = self._git(
            *("log", "--first-parent", "-m", "--name-only", "--no-renames", "--format=%x00%H", line[-1], f"^{line[0]}")
        ).stdout
        blocks = (block.split("\n") for block in shown.split("\0")[1:])
        return {commit: tuple(path.strip('"') for path in paths if path) for commit, *paths in blocks}

    def _require_wheels_of_commits(self) -> None:
        if self.wheels is None:
            return
        try:
            if not self.wheels.startswith("url:") or "{sha}" not in self.wheels:
                raise BenchmarkError("names no wheels of commits; write url:TEMPLATE with {sha} in it")
            parse_address(self.address(self.good))
        except BenchmarkError as error:
            raise BotError(f"--wheels: {error}") from error

    def _commit(self, revision: str, option: str) -> str:
        if not revision or revision.startswith("-") or not revision.isprintable():
            raise BotError(f"{option} {revision[:60]!a}: names no commit")
        if (commit := commit_in(self.folder, revision)) is None:
            raise BotError(f"{option} {revision[:100]}: {self.folder} has no such commit, branch or tag")
        return commit

    def _common(self) -> str:
        found = self._git("merge-base", self.good, self.bad, check=False).stdout.strip()
        return f"{found[:12]}, where they part" if found else "one of another history: these have nothing in common"

    def _history(self) -> History:
        """The parents of all commits that are in the bad end: a branch may have left the main line before the good."""
        shown = self._git("rev-list", "--parents", self.bad).stdout
        return {commit: parents for commit, *parents in map(str.split, shown.splitlines())}

    def _git(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return run_git(self.folder, *arguments, check=check)


def commit_in(folder: Path, revision: str) -> str | None:
    """The full name of a revision in the repository of a folder; None if it has none of that name."""
    if not revision or revision.startswith("-") or not revision.isprintable():
        return None
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    found = run_git(top_of(folder), *asked, check=False)
    commit = found.stdout.strip()
    return commit if found.returncode == 0 and COMMIT.fullmatch(commit) else None


def subject_in(folder: Path, commit: str) -> str:
    """The first line of the message of a commit. Foreign text, on one line."""
    return one_line(run_git(top_of(folder), "show", "--no-patch", "--format=%s", commit).stdout)


def top_of(folder: Path, option: str = "--repo") -> Path:
    """The folder that git knows the repository by: of a working tree its top, of a bare one itself."""
    if not folder.is_dir():
        raise BotError(f"{option} {folder}: is no folder")
    found = run_git(folder, "rev-parse", "--show-toplevel", check=False)
    if found.returncode == 0:
        return Path(found.stdout.rstrip("\n"))
    bare = run_git(folder, "rev-parse", "--absolute-git-dir", check=False)
    if bare.returncode != 0:
        raise BotError(f"{option} {folder}: is no git repository ({one_line(bare.stderr)})")
    return Path(bare.stdout.rstrip("\n"))


def run_git(folder: Path, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """A command of git that reads."""
    git = shutil.which("git")
    if git is None:
        raise BotError("git: is not installed, and the range is one of commits")
    ended = subprocess.run(
        [git, "--no-pager", "--no-optional-locks", *_SAFE, "-C", str(folder), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=git_variables(local=True),
        check=False,
    )
    if check and ended.returncode != 0:
        raise BotError(f"git {arguments[0]} in {folder}: {one_line(ended.stderr) or f'exit {ended.returncode}'}")
    return ended
