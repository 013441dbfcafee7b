"""Folders of the cache: their removal, their size, what is in them, and the logs that stay."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Collection
from pathlib import Path

from torchbenchmark.builds.workshop import without_credentials

_BLOCK = 512  # bytes of a block as lstat counts, whatever the file system
_LONGEST_LOG = 16 * 2**20  # bytes of a log that are kept: its end


def remove(folder: Path) -> None:
    """Remove a folder, also one with folders in it that nobody may write into."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for path, folders, _ in os.walk(folder):
        for name in folders:
            inside = Path(path, name)
            with contextlib.suppress(OSError):
                if not inside.is_symlink():
                    inside.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def size_of(folder: Path) -> int:
    """Bytes that the files of a folder take on the disk."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(path, name).lstat().st_blocks * _BLOCK
    return total


def contents_of(folder: Path, left_out: Collection[str]) -> str:
    """A digest over the names and sizes of the files of a folder, less bytecode and what is `left_out` at its top."""
    lines = []
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            full = Path(path, name)
            if not (full.parent == folder and name in left_out):
                size = f"-> {full.readlink()}" if full.is_symlink() else full.lstat().st_size
                lines.append(f"{full.relative_to(folder)} {size}")
    return hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()


def keep_log(log: Path, kept: Path) -> None:
    """Put the end of a log where it stays, clean of the logins that commands may have written into it."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LOG))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return
    kept.write_text(without_credentials(text), encoding="utf-8")
