"""A commit that takes another one back on top of a range. It is made in a clone of our own: the user's repository is
only read."""

import os
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bot.bisection.worktrees import checked_out
from bot.errors import BotError
from torchbenchmark.builds.build_errors import BuildNotFound, CommandFailed
from torchbenchmark.builds.folders import remove
from torchbenchmark.builds.git import COMMIT, SAFE, git_variables
from torchbenchmark.builds.workshop import Workshop, all_lines, says_full

TIMEOUT_S = 3600.0
# Fixed, so that the commit is the same each time that it is made.
_WHO = {
    **{f"GIT_{role}_NAME": "torchbench bisect" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "torchbench@localhost" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "2000-01-01T00:00:00+0000" for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class DoesNotApply(BotError):
    """The commit cannot be taken back there: later ones have touched the same lines."""


@dataclass(frozen=True)
class Reverts:
    """Makes such commits. They are kept in the mirror of the repository (builds/git.py), where builds find them."""

    repository: Path
    folder: Path
    leases: ExitStack  # holds the mirror

    def __call__(self, bad: str, culprit: str, *, merge: bool) -> str:
        """The commit that takes the culprit back on top of `bad`; of a merge, all that it brought in. Raises
        DoesNotApply."""
        place = self.folder / culprit[:20]
        if place.exists():
            remove(place)
        place.mkdir(parents=True)
        shop = Workshop(place, place / "log")
        source = place / "source"
        git = shutil.which("git") or "git"

        def run(what: str, *arguments: str) -> None:
            variables = {**git_variables(local=True), **_WHO}
            shop.run([git, *SAFE, *arguments], what, timeout_s=TIMEOUT_S, variables=variables)

        try:
            mirror = checked_out(self.repository, bad, shop, source, self.leases, submodules=False)
            mainline = ("-m", "1") if merge else ()
            try:
                run("it cannot be reverted", "-C", str(source), "revert", "--no-edit", *mainline, culprit)
            except CommandFailed as error:
                if error.full or says_full(all_lines(shop.log)):
                    raise BotError(f"{self.folder}: the disk is full; make room") from error
                told = next((line for line in all_lines(shop.log) if line.startswith(("CONFLICT", "error:"))), "")
                raise DoesNotApply(f"it does not revert cleanly{': ' + told if told else ''}") from error
            commit = _head(source)
            mirror.keep(source, commit)
        except (CommandFailed, BuildNotFound) as error:
            raise BotError(f"{culprit[:12]} could not be reverted on {bad[:12]}: {error}") from error
        finally:
            if source.exists():
                remove(source)
        return commit


def _head(source: Path) -> str:
    commit = (source / ".git" / "HEAD").read_text().strip()  # detached, as it was checked out
    if not COMMIT.fullmatch(commit):
        raise BotError(f"{source}: its head is no commit")
    return commit
