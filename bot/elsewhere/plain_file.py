"""Reads what a machine has left that is not trusted: no link, no device, and never more than a bound."""

import os
import stat
from pathlib import Path

from bot.errors import BotError


def read_bounded(path: Path, largest: int, refusal: type[BotError] = BotError) -> bytes:
    """The content of a plain file that is not too large; else the refusal is raised."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise refusal(f"{path.name}: is no plain file")
            content = file.read(largest + 1)
    except OSError as error:  # a link among them
        raise refusal(f"{path.name}: cannot be read: {error.strerror}") from error
    if len(content) > largest:
        raise refusal(f"{path.name}: larger than {largest // 2**20} MiB")
    return content
