"""Builds of a range by the address that each name has, from the cache of builds."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from bot.bisection.document import Made, Noun
from torchbenchmark.builds.build_errors import BuildFailed, BuildNotFound
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import ProvidedBuild, provide
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.builds.source_commit import source_commit
from torchbenchmark.environment import normalised_name

MOST_READY = 3  # builds that the cache is kept from removing, where they can be got again


class Addresses(Protocol):
    """Of builds: those of a range (ranges.py), or of archives that have come from elsewhere."""

    noun: Noun
    good: str

    def address(self, name: str) -> str: ...
    def prepare(self, name: str) -> str: ...


@dataclass
class Provided:
    """Builds that are ready, and stay so while they are among the last that were asked for."""

    range: Addresses
    settings: BuildSettings
    subject: str
    leases: ExitStack
    plain: bool = False  # for a measuring command
    ready: dict[str, ProvidedBuild] = field(default_factory=dict)  # the last that was asked for is the last

    def made(self, name: str) -> Made:
        """An attempt. Raises BenchmarkError for a full disk and the like, which says nothing of this build."""
        began = time.monotonic()
        try:
            build = self.build(name)
        except BuildFailed as error:
            log = str(error.log or "")
            return Made(commit=name, ok=False, reason=str(error), log=log, lines=error.lines, seconds=_since(began))
        except BuildNotFound as error:
            return Made(commit=name, ok=False, reason=str(error), seconds=_since(began))
        source = ""
        if self.range.noun == "date":
            paths = [
                BuildCache.open().wheel_path(wheel)
                for wheel in build.wheels
                if wheel.name == normalised_name(self.subject)
            ]
            source = next(filter(None, map(source_commit, paths)), "")
        return Made(commit=name, ok=True, source=source, seconds=_since(began))

    def build(self, name: str) -> ProvidedBuild:
        """Raises BuildNotFound, BuildFailed and what else `provide` raises."""
        found = self.ready.pop(name, None)
        if found is None:
            if reason := self.range.prepare(name):
                raise BuildNotFound(reason)
            address = self.range.address(name)
            found = provide(address, BuildCache.open(), self.settings, subject=self.subject, plain=self.plain)
            self.leases.callback(found.close)
        self.ready[name] = found
        self._let_go()
        return found

    def _let_go(self) -> None:
        """Leave to the limit of the cache what was not asked for lately; what was built here took hours, and stays."""
        if self.range.address(self.range.good).startswith("git:"):
            return
        for name in [name for name in self.ready if name != self.range.good][:-MOST_READY]:
            self.ready.pop(name).close()


def _since(began: float) -> float:
    return time.monotonic() - began
