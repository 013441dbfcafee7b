"""The commit that a wheel says it was made of: `git_version` in its version.py, which torch and its libraries have."""

import re
import zipfile
from pathlib import Path

_LARGEST = 2**20  # bytes of a version.py
_COMMIT = re.compile(rb"""^git_version(?:\s*:\s*[^=\n]+)?\s*=\s*["']([0-9a-f]{40})["']""", re.MULTILINE)


def source_commit(wheel: Path) -> str:
    """The full commit; empty where the wheel tells none, or cannot be read. Nothing of it runs."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                if re.fullmatch(r"[A-Za-z0-9_]+/version\.py", member.filename) and member.file_size <= _LARGEST:
                    found = _COMMIT.search(archive.read(member))
                    if found is not None:
                        return found[1].decode()
    except Exception:  # a damaged archive gives whatever its numbers lead to
        return ""
    return ""
