"""A folder as the store: one file per object, each replaced in one step, writers kept apart by one lock file."""

import fcntl
import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from baselines.errors import BaselineError
from baselines.store.interface import Store, Versioned, check_key, check_prefix, coming_to

# Keys never begin with a dot, so neither file can be taken for an object.
_LOCK = ".lock"
# Written only under the lock, so one name does for all writers: a kill leaves one stray file, the next write reuses it.
_INCOMING = ".incoming"
_BLOCK = 2**20


class FolderStore(Store):
    """The store in a folder, made by the first write. Safe between processes of one host, and of several if the file
    system's locks are. A kill at any moment leaves the old content of an object or the new."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def location(self) -> str:
        return str(self.root)

    def read_if_present(self, key: str) -> bytes | None:
        with self._errors(key):
            return _content(self._path(key))

    def list(self, prefix: str) -> list[str]:
        folder, _, _ = check_prefix(prefix).rpartition("/")
        with self._errors(prefix):
            return sorted(self._keys(self.root / folder, prefix))

    def read_versioned(self, key: str) -> Versioned | None:
        content = self.read_if_present(key)
        return None if content is None else Versioned(content, _version(content))

    def write_if(self, key: str, content: bytes, version: str | None) -> bool:
        path = self._path(key)
        with self._errors(key), self._locked():
            stored = _content(path)
            if version != (None if stored is None else _version(stored)):
                return False
            self._replace(path, io.BytesIO(content))
            return True

    def create_from_file(self, key: str, path: Path) -> bool:
        """See Store. Other writers wait until the file is copied."""
        kept = self._path(key)
        with self._errors(key), self._locked():
            if kept.is_file():
                return False
            with path.open("rb") as content:
                self._replace(kept, content)
            return True

    def read_to_file(self, key: str, path: Path) -> bool:
        kept = self._path(key)
        with self._errors(key):
            if not kept.is_file():
                return False
            with coming_to(path) as scratch:
                shutil.copyfile(kept, scratch)
            return True

    def size(self, key: str) -> int | None:
        path = self._path(key)
        with self._errors(key):
            return path.stat().st_size if path.is_file() else None

    def delete(self, key: str) -> None:
        path = self._path(key)
        with self._errors(key), self._locked():
            if path.is_file():
                path.unlink()
                _sync(path.parent)

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _keys(self, folder: Path, prefix: str) -> Iterator[str]:
        """The keys below `folder`, leaving out folders that cannot hold the prefix."""
        if not folder.is_dir():
            return
        for entry in os.scandir(folder):
            if entry.name.startswith("."):
                continue
            key = Path(entry.path).relative_to(self.root).as_posix()
            if entry.is_dir():
                if f"{key}/".startswith(prefix) or prefix.startswith(f"{key}/"):
                    yield from self._keys(Path(entry.path), prefix)
            elif key.startswith(prefix):
                yield key

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time; the system drops the lock of a process that dies."""
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / _LOCK, "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _replace(self, path: Path, content: IO[bytes]) -> None:
        """Only under the lock. The folder is synced too: a rename that is not on disk is lost with the power."""
        incoming = self.root / _INCOMING
        with incoming.open("wb") as file:
            shutil.copyfileobj(content, file, _BLOCK)
            file.flush()
            os.fsync(file.fileno())
        missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        incoming.replace(path)
        for folder in dict.fromkeys((path.parent, *(folder.parent for folder in missing))):
            _sync(folder)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BaselineError(f"{self.root}: {key or 'the store'}: {error.strerror or error}") from error


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
