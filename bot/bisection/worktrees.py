"""A checkout of every commit that is tried, with what the build command left in it. Each is a clone of its own that
shares the objects of a mirror (the provider `git`), so that no command reaches the user's repository."""

import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bot.bisection.document import Made
from bot.errors import BotError
from torchbenchmark.builds.build_errors import CommandFailed
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.folders import remove
from torchbenchmark.builds.git import GitAddress, Mirror, check_out
from torchbenchmark.builds.provide import ask
from torchbenchmark.builds.settings import GitSettings, build_variables
from torchbenchmark.builds.workshop import Workshop, all_lines, blames_network, last_lines, says_full
from torchbenchmark.foreign_text import one_line

MADE = (
    "made.json"  # beside the checkout, written last: what came of the attempt, also if a kill comes before it is stored
)


@dataclass(frozen=True)
class Worktrees:
    """Checkouts in a folder, by commit."""

    repository: Path
    folder: Path
    command: str | None  # makes a build where it runs, in a shell; None where a checkout is all that is needed
    timeout_s: float
    leases: ExitStack  # holds the mirror while there are checkouts in use

    def source(self, commit: str) -> Path:
        return self.folder / commit[:20] / "source"

    def is_there(self, commit: str) -> bool:
        made = self._made(commit)
        return made is not None and made.ok

    def variables(self, commit: str) -> dict[str, str]:
        """Of both commands: this process's, without what looks like a secret."""
        named = {"COMMIT": commit, "SOURCE": str(self.source(commit))}
        return {**build_variables(GitSettings()), **{f"TORCHBENCH_BUILD_{name}": text for name, text in named.items()}}

    def build(self, commit: str) -> Made:
        """Check a commit out and build it, unless both were done before a kill. Raises BotError for a full disk and
        the like, which says nothing of the commit."""
        place = self.folder / commit[:20]
        began = time.monotonic()
        if (made := self._made(commit)) is not None:
            return made
        if place.exists():
            remove(place)
        place.mkdir(parents=True)
        shop = Workshop(place, place / "log")
        what = f"{commit[:12]} could not be built"
        try:
            self._check_out(commit, shop)
            if self.command is not None:
                shop.run(
                    ["/bin/sh", "-c", self.command],
                    what,
                    timeout_s=self.timeout_s,
                    variables=self.variables(commit),
                    folder=self.source(commit),
                )
            made = Made(commit=commit, ok=True)
        except CommandFailed as error:
            made = self._failed(commit, error, shop)
        made = made.model_copy(update={"seconds": time.monotonic() - began})
        scratch = place / f".{MADE}"
        scratch.write_text(made.model_dump_json(), encoding="utf-8")
        scratch.replace(place / MADE)
        return made

    def remove(self) -> None:
        """All checkouts; the logs of what failed stay."""
        if self.folder.exists():
            remove(self.folder)

    def _check_out(self, commit: str, shop: Workshop) -> None:
        checked_out(self.repository, commit, shop, shop.folder / "source", self.leases, submodules=True)

    def _made(self, commit: str) -> Made | None:
        try:
            made = Made.model_validate_json((self.folder / commit[:20] / MADE).read_bytes())
        except (OSError, ValidationError):
            return None
        return made if made.commit == commit else None

    def _failed(self, commit: str, error: CommandFailed, shop: Workshop) -> Made:
        lines = all_lines(shop.log)
        if error.full or says_full(lines):
            raise BotError(
                f"{self.folder}: the disk is full, so {commit[:12]} could not be built; make room"
            ) from error
        if network := blames_network(lines):
            raise BotError(f"{error}: {network}; that says nothing of the commit: try again later") from error
        kept = self.folder.parent / "logs" / f"{commit[:20]}.log"
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(shop.log, kept)
        if (shop.folder / "source").exists():
            remove(shop.folder / "source")
        told = tuple(last_lines(kept))
        reason = one_line(f"{error}{': ' + ' | '.join(told) if told else ''}")
        return Made(commit=commit, ok=False, reason=reason, log=str(kept), lines=told)


def checked_out(
    repository: Path, commit: str, shop: Workshop, source: Path, leases: ExitStack, *, submodules: bool
) -> Mirror:
    """Check a commit out into a clone of its own. Gives the mirror whose objects it shares; the leases hold that."""
    request = ask(BuildCache.open(), None)
    address = GitAddress(str(repository), commit)
    mirror = Mirror(address.repository, True, request)
    leases.enter_context(request.cache.use(f"mirror-{mirror.name}"))
    mirror.commit(commit)
    check_out(address, mirror, shop, source, submodules=submodules)
    return mirror
