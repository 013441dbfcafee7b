"""A store that is only read: what would be written is forgotten, and told as if it were done."""

from pathlib import Path

from baselines.store.interface import Store, Versioned


class Unwritten(Store):
    """Another store, for a rehearsal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def location(self) -> str:
        return self._store.location

    def read_if_present(self, key: str) -> bytes | None:
        return self._store.read_if_present(key)

    def list(self, prefix: str) -> list[str]:
        return self._store.list(prefix)

    def read_versioned(self, key: str) -> Versioned | None:
        return self._store.read_versioned(key)

    def write_if(self, key: str, content: bytes, version: str | None) -> bool:
        return True

    def create_from_file(self, key: str, path: Path) -> bool:
        return True

    def read_to_file(self, key: str, path: Path) -> bool:
        return self._store.read_to_file(key, path)

    def size(self, key: str) -> int | None:
        return self._store.size(key)

    def delete(self, key: str) -> None:
        """Nothing is."""
