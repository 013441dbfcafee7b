"""The artifact of the measuring job: a few plain files of known names. It is packed from folders in which code of the
pull request could leave anything, and what is unpacked again may still be anything."""

import os
from pathlib import Path

from bot.elsewhere.plain_file import read_bounded
from bot.errors import BotError
from bot.pull_request.outcomes import BUILT, MEASURED, PAIRS, PROFILES
from torchbenchmark.foreign_text import one_line
from torchbenchmark.quantity import counted

BASE, HEAD = "base.json", "head.json"
LARGEST = {BASE: 2**20, HEAD: 2**20, MEASURED: 2**20, PAIRS: 96 * 2**20, PROFILES: 96 * 2**20}


class ArtifactRefused(BotError):
    """What the measuring job has left is nothing that is believed."""


def pack(base: Path, head: Path, measured: Path, into: Path) -> list[str]:
    """Copy what the folders of the isolated steps hold of the artifact's files; what was left out and why.

    Called outside of the isolation, by whom may read more than the pull request: no link is followed.
    """
    into.mkdir(parents=True, exist_ok=True)
    left_out = []
    for folder, file, name in (
        (base, BUILT, BASE),
        (head, BUILT, HEAD),
        *((measured, file, file) for file in (MEASURED, PAIRS, PROFILES)),
    ):
        if not os.path.lexists(folder / file):
            continue
        try:
            (into / name).write_bytes(read_bounded(folder / file, LARGEST[name], ArtifactRefused))
        except BotError as error:
            left_out.append(one_line(f"{name}: {error}"))
    return left_out


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of an unpacked artifact. Raises ArtifactRefused for anything in it that is not one of them."""
    try:
        names = _few_names(folder)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ArtifactRefused(f"the results cannot be read: {error.strerror}") from error
    if others := sorted(set(names) - LARGEST.keys()):
        told = one_line(ascii(others[0]))[:100]
        raise ArtifactRefused(f"the results hold {counted(len(others), 'file')} that no measuring leaves: {told}")
    return {name: read_bounded(folder / name, LARGEST[name], ArtifactRefused) for name in names}


def _few_names(folder: Path) -> list[str]:
    if folder.is_symlink():
        raise ArtifactRefused("the results are a link")
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > len(LARGEST):
                raise ArtifactRefused(f"the results are more than {len(LARGEST)} files")
    return names
