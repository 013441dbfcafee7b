"""Interpreters of builds of earlier nights: the one that measured the night, if it still holds the build, or else the
build installed again as it was pinned, from its index or from the wheels that the store has kept."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from baselines.kept_wheels import fetch, kept_build
from baselines.store import Store
from baselines.stored_builds import StoredBuild, stored_build
from torchbenchmark.builds.folders import remove
from torchbenchmark.builds.installation import OURS, WHOLE, install, installed_build
from torchbenchmark.environment import inspect_interpreter
from torchbenchmark.errors import SentinelError
from torchbenchmark.records import Build

MOST_INSTALLED = 4  # folders; one of a build for CUDA has some GiB


class BuildsOfNights:
    """Answers for one night: what was found once is found again at once, and so is what was not."""

    def __init__(self, store: Store, folder: Path, subject: str, measured: Iterable[Build]) -> None:
        """`measured`: the builds of the nights that may be asked for. `folder` is for those that are installed again;
        whoever uses it holds the lock of the nightly's `work`."""
        self.store = store
        self.folder = folder
        self.subject = subject
        self._measured: dict[str, dict[Path, None]] = {}
        for build in measured:
            self._measured.setdefault(build.id, {})[Path(build.interpreter)] = None
        self._found: dict[str, Path] = {}
        self._why_not: dict[str, str] = {}

    def interpreter(self, build: str) -> Path | None:
        """An interpreter that holds the build of this id; None if there is none to be had. May take the minutes of an
        installation: whether a build can be measured is only known then."""
        if build not in self._found and build not in self._why_not:
            reasons = []
            for find in self._ways(build):
                try:
                    python = find()
                    if problem := self._problem(python, build):
                        reasons.append(problem)
                    else:
                        self._found[build] = python
                        return python
                except SentinelError as error:
                    reasons.append(str(error))
            self._why_not[build] = "; ".join(reasons)
        return self._found.get(build)

    def why_not(self, build: str) -> str:
        """Why there is no interpreter of the build."""
        self.interpreter(build)
        return self._why_not.get(build, "")

    def _problem(self, python: Path, build: str) -> str:
        """What keeps an interpreter from being that of the build; empty if nothing does."""
        found = inspect_interpreter(python, self.subject).build.id
        return "" if found == build else f"{python}: holds build {found}"

    def _ways(self, build: str) -> Iterator[Callable[[], Path]]:
        """How an interpreter may be come by, the cheapest first."""
        for python in self._measured.get(build, ()):
            yield lambda python=python: python
        try:
            stored = stored_build(self.store, build)
        except SentinelError as error:
            yield _failing(error)
            return
        if stored is None:
            reason = f"{self.store.location}: has no pin of build {build}; only builds that `build` chose have one"
            yield _failing(SentinelError(reason))
            return
        if installed_build(self.folder / build) is not None:
            yield lambda: self._used(self.folder / build)
        yield lambda: self._from_index(stored)
        yield lambda: self._from_store(stored)

    def _used(self, folder: Path) -> Path:
        os.utime(folder / WHOLE)
        return folder / "bin" / "python"

    def _from_index(self, stored: StoredBuild) -> Path:
        return install(stored.pin, self._folder_of(stored.build), versions=stored.versions)

    def _from_store(self, stored: StoredBuild) -> Path:
        kept = kept_build(self.store, stored.build)
        if kept is None:
            raise SentinelError(f"{self.store.location}: has not kept the wheels of build {stored.build}")
        folder = self._folder_of(stored.build)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".wheels-") as wheels:
            return install(stored.pin, folder, wheels=fetch(self.store, kept, Path(wheels)))

    def _folder_of(self, build: str) -> Path:
        """The folder of a build that is to be installed: empty, and with room for it. What was used longest ago goes,
        and never what was given out."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".wheels-*"):  # by one that was killed
            remove(left)
        mine = self.folder / build
        remove(mine)  # of another installation of the build, which came to something else
        given = {python.parent.parent for python in self._found.values()}
        ours = [folder for folder in self.folder.iterdir() if (folder / OURS).is_file() and folder not in given]
        room = max(0, MOST_INSTALLED - 1 - len(given & set(self.folder.iterdir())))
        for folder in sorted(ours, key=_last_used, reverse=True)[room:]:
            (folder / WHOLE).unlink(missing_ok=True)
            remove(folder)
        return mine


def _failing(error: SentinelError) -> Callable[[], Path]:
    def fail() -> Path:
        raise error

    return fail


def _last_used(folder: Path) -> float:
    """When a build was last given out; 0 for one that never was whole."""
    try:
        return (folder / WHOLE).stat().st_mtime
    except FileNotFoundError:
        return 0.0
