"""Keeps the cache under its size: what was used longest ago goes first, what is in use never."""

import contextlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from torchbenchmark.builds.cache import WHOLE, BuildCache
from torchbenchmark.builds.folders import remove, size_of


@dataclass(frozen=True)
class Item:
    """What can be removed by itself."""

    kind: str  # environment, wheel, mirror
    key: str
    folder: Path
    bytes: int
    used: datetime

    @property
    def lock(self) -> str:
        return f"{self.kind}-{self.key}"


def items(cache: BuildCache) -> list[Item]:
    """All that takes space, the one first that was used longest ago."""
    found = []
    for kind in ("environment", "wheel", "mirror"):
        for folder in (cache.folder / f"{kind}s").iterdir():
            whole = folder / WHOLE if kind == "environment" and (folder / WHOLE).is_file() else folder
            with contextlib.suppress(FileNotFoundError):
                used = datetime.fromtimestamp(whole.stat().st_mtime, UTC)
                record = cache.environment(folder.name) if kind == "environment" else None
                size = record.bytes if record is not None else size_of(folder)
                found.append(Item(kind, folder.name.removesuffix(".git"), folder, size, used))
    # An environment is made from its wheels in a minute, a wheel from its commit in hours.
    return sorted(found, key=lambda item: (item.used, item.kind != "environment", item.key))


def shrink(cache: BuildCache, max_bytes: int | None = None, keep: Collection[str] = ()) -> list[Item]:
    """Remove until the cache is no larger than its limit, or nothing is left that may go: what is in use stays, and so
    do the items whose locks are named in `keep`. Gives what was removed."""
    limit = cache.max_bytes if max_bytes is None else max_bytes
    _remove_unfinished(cache)
    there = items(cache)
    total = sum(item.bytes for item in there)
    removed = []
    for item in there:
        if total <= limit:
            break
        if item.lock not in keep and remove_item(cache, item):
            total -= item.bytes
            removed.append(item)
    return removed


def remove_item(cache: BuildCache, item: Item) -> bool:
    """Remove an item that nobody makes or uses; False if somebody does."""
    with cache.alone(item.lock) as alone:
        if not alone:
            return False
        trash = cache.folder / "work" / f"trash-{secrets.token_hex(8)}"
        with contextlib.suppress(FileNotFoundError):
            item.folder.rename(trash)  # at once: no half entry is ever in its place
    remove(trash)
    return True


def _remove_unfinished(cache: BuildCache) -> None:
    """What an installation that was killed has left, and wheels that were being copied."""
    cache.remove_leftovers()
    for folder in (cache.folder / "environments").iterdir():
        if not (folder / WHOLE).is_file():
            remove_item(cache, Item("environment", folder.name, folder, 0, datetime.now(UTC)))
