"""Traces of profiled processes, for a viewer: one of either side of each test, compressed, none above a size."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

LARGEST_TRACE = 32 * 2**20  # bytes, compressed


class Traces:
    """Says where a child leaves its trace, and takes it from there."""

    def __init__(self, folder: Path | None, scratch: Path, note: Callable[[str], None]) -> None:
        """No `folder`: no traces."""
        self.folder = folder
        self.scratch = scratch
        self.note = note
        self._told: set[str] = set()

    def wanted(self, test: str, side: str) -> str | None:
        """The path for the trace of a process that is about to be measured; None if there is one already."""
        if self.folder is None or (self.folder / file_name(test, side)).exists() or test + side in self._told:
            return None
        return str((self.scratch / file_name(test, side)).absolute())

    def keep(self, test: str, side: str) -> None:
        """Take what the process left, if it is a file and not too large; a note says if not."""
        left = self.scratch / file_name(test, side)
        if self.folder is None or not left.is_file() or left.is_symlink():
            return
        size = left.stat().st_size
        if size > LARGEST_TRACE:
            left.unlink()
            self._told.add(test + side)
            self.note(f"{test}: the trace of {side} has {size / 2**20:.0f} MiB and is not kept")
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.move(left, self.folder / left.name)


def file_name(test: str, side: str, suffix: str = ".json.gz") -> str:
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', test).strip('-')}-{side}{suffix}"
