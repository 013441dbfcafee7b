"""Files that one job leaves for another: written whole or not at all, so that nobody takes a part for the whole."""

import os
from pathlib import Path

from bot.errors import BotError


def write_whole(path: Path, content: bytes, *, make_folder: bool = False) -> None:
    """Replace the file in one step. Raises BotError naming it; what was there before stays then."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_bytes(content)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise BotError(f"{path}: cannot be written: {error.strerror}") from error
