"""What can go wrong when a build is asked for. Whoever walks over many builds tells them apart: a build that fails is
skipped, a full disk or an index that does not answer ends the walk."""

from collections.abc import Sequence
from pathlib import Path

from torchbenchmark.errors import BenchmarkError


class BuildNotFound(BenchmarkError):
    """There is no such build, now: no such interpreter, version, wheel or commit. Not remembered."""


class BuildUnavailable(BenchmarkError):
    """Whoever has the build does not answer, or refuses. Not remembered: it may pass."""


class NoSpace(BenchmarkError):
    """The disk is full, or a limit on files is reached. Nothing half is left, and it is not remembered."""


class BuildFailed(BenchmarkError):
    """The build is there and cannot be made. Remembered: asked for again, it fails at once."""

    def __init__(self, message: str, log: Path | None = None, lines: Sequence[str] = (), remembered: bool = False):
        super().__init__(message)
        self.log = log
        self.lines = tuple(lines)  # the last of the log, clean of credentials
        self.remembered = remembered  # from an earlier request


class CommandFailed(Exception):
    """A command that makes a build ended badly; its output is in the log. Becomes one of the errors above."""

    def __init__(self, what: str, how: str, full: bool = False, code: int | None = None):
        super().__init__(f"{what} ({how})")
        self.how = how
        self.code = code  # its exit status; None if it was ended
        self.full = full  # ended by the system for a file too large
