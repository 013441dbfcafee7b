"""The local cache of builds: wheels by their SHA-256, virtual environments by what is in them, and what failed.

    wheels/<sha256>/<file>.whl      sources/<key>.json    the wheels that a source gave, and .log
    environments/<key>/             failures/<key>.json   what failed, and .log
    mirrors/<key>.git               work/                 scratch of who is building now
    locks/                          never removed, as who waits for a lock waits for its file

A wheel is copied aside and renamed. A virtual environment holds absolute paths, so it is made where it stays and is
whole once its `environment.json` is there, which is written last. Two locks guard an entry: one is held by who makes or
removes it, the other is shared by all who use it. The system frees both when a process dies.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion
from pydantic import ValidationError

from torchbenchmark.builds.build_errors import NoSpace
from torchbenchmark.builds.cache_records import (
    CachedWheel,
    CacheRecord,
    EnvironmentRecord,
    FailureRecord,
    SourceRecord,
)
from torchbenchmark.builds.folders import keep_log, remove
from torchbenchmark.builds.workshop import Workshop, sha256_of
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.terminal import console

FOLDER_VARIABLE = "TORCHBENCH_BUILDS"
LIMIT_VARIABLE = "TORCHBENCH_BUILDS_MAX_GIB"
DEFAULT_FOLDER = Path("~/.cache/torchbench/builds")
DEFAULT_MAX_GIB = 100.0
MARK = ".torchbench-builds"  # in a folder that we may remove from
WHOLE = "environment.json"
LOG = "install.log"
_NEXT_TO_NOTHING = 2**20  # free bytes, with which no build goes on
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Record = TypeVar("Record", bound=CacheRecord)


@dataclass(frozen=True)
class BuildCache:
    """The folder, and the size that it is kept under as far as nothing in use is removed."""

    folder: Path
    max_bytes: int

    @classmethod
    def open(cls, folder: Path | None = None, max_gib: float | None = None) -> "BuildCache":
        """The cache in a folder, made if need be; defaults come from the environment. Raises BenchmarkError."""
        folder = (folder or Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)).expanduser().absolute()
        if max_gib is None:
            max_gib = _gib(os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_MAX_GIB))
        if not 0 <= max_gib < float("inf"):
            raise BenchmarkError(f"size limit of {max_gib} GiB: name a number of GiB that is not negative")
        cache = cls(folder, int(max_gib * 2**30))
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (folder / MARK).is_file() and any(folder.iterdir()):
                raise BenchmarkError(f"{folder}: is not empty and no cache of builds; name a new or empty folder")
            (folder / MARK).touch()
            for name in ("wheels", "sources", "environments", "failures", "mirrors", "work", "locks"):
                (folder / name).mkdir(exist_ok=True)
        except OSError as error:
            raise cache.no_space(error) from error
        return cache

    # Locks

    @contextmanager
    def making(self, name: str) -> Iterator[int]:
        """An entry for one maker alone; waits for another. Gives the descriptor that holds the lock."""
        with _open(self.folder / "locks" / f"{name}.make") as lock:
            if not _try_lock(lock, fcntl.LOCK_EX):
                console.print(f"waiting for another process that makes {name[:20]}", markup=False)
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock

    def use(self, name: str) -> "Lease":
        """Keep an entry from being removed until the lease is closed or this process ends."""
        lock = os.open(self.folder / "locks" / f"{name}.use", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return Lease(lock)

    @contextmanager
    def unused(self, name: str) -> Iterator[bool]:
        """Whether nobody uses an entry, which stays so in the block. For who makes it."""
        with _open(self.folder / "locks" / f"{name}.use") as use:
            yield _try_lock(use, fcntl.LOCK_EX)

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Whether nobody makes or uses an entry, which stays so in the block."""
        with _open(self.folder / "locks" / f"{name}.make") as make, self.unused(name) as unused:
            yield unused and _try_lock(make, fcntl.LOCK_EX)

    # Scratch

    @contextmanager
    def workshop(self, key: str, *locks: int) -> Iterator[Workshop]:
        """A scratch folder, gone after the block. What a killed process left is removed on the way."""
        self.remove_leftovers()
        name = f"{key[:12]}-{secrets.token_hex(8)}"
        with _open(self.folder / "locks" / f"{name}.scratch") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = self.folder / "work" / name
            folder.mkdir()
            try:
                yield Workshop(folder, folder / "log", (*locks, lock))
            finally:
                remove(folder)
                (self.folder / "locks" / f"{name}.scratch").unlink(missing_ok=True)

    def remove_leftovers(self) -> None:
        """Remove the scratch of processes that are no more."""
        for folder in (self.folder / "work").iterdir():
            path = self.folder / "locks" / f"{folder.name}.scratch"
            with _open(path) as lock:
                if _try_lock(lock, fcntl.LOCK_EX):
                    remove(folder)
                    path.unlink(missing_ok=True)

    # Wheels

    def wheel_path(self, wheel: CachedWheel) -> Path:
        return self.folder / "wheels" / wheel.sha256 / wheel.file

    def keep_wheel(self, path: Path, *, move: bool = False) -> CachedWheel:
        """Take a wheel file into the cache: a copy or, from a workshop of this cache, the file itself. Raises
        BenchmarkError if it is not named as a wheel."""
        try:
            name, version, _, _ = parse_wheel_filename(path.name)
            size = path.stat().st_size
            wheel = CachedWheel(name=name, version=str(version), file=path.name, sha256=sha256_of(path), bytes=size)
        except (InvalidWheelFilename, InvalidVersion, ValidationError) as error:
            raise BenchmarkError(f"{path.name[:100]!r}: is not the name of a wheel") from error
        kept = self.wheel_path(wheel)
        if self._is_there(wheel):
            return wheel
        kept.parent.mkdir(exist_ok=True)
        scratch = kept.with_name(f".{secrets.token_hex(8)}")
        try:
            if move:
                path.replace(kept)
                return wheel
            shutil.copyfile(path, scratch)
            if sha256_of(scratch) != wheel.sha256:
                raise BenchmarkError(f"{path.name}: changed while it was copied into the cache")
            scratch.replace(kept)
        finally:
            scratch.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                kept.parent.rmdir()  # if nothing came into it
        return wheel

    def _is_there(self, wheel: CachedWheel) -> bool:
        try:
            return self.wheel_path(wheel).stat().st_size == wheel.bytes
        except OSError:
            return False

    def checked_wheels(self, wheels: Iterable[CachedWheel]) -> list[Path] | None:
        """The files of the wheels if all are what their SHA-256 says; None if one is not, which is removed."""
        paths = []
        for wheel in wheels:
            path = self.wheel_path(wheel)
            if not path.is_file():
                return None
            if sha256_of(path) != wheel.sha256:
                console.print(f"{path}: is damaged; getting it anew", markup=False, style="yellow")
                path.unlink()
                return None
            paths.append(path)
        return paths

    def touch_wheels(self, wheels: Iterable[CachedWheel]) -> None:
        """Say that the wheels were used now, those that are still there."""
        for wheel in wheels:
            with contextlib.suppress(FileNotFoundError):
                os.utime(self.wheel_path(wheel).parent)

    # Sources: which wheels an address means

    def source(self, key: str) -> SourceRecord | None:
        """What a source gave earlier, be its wheels still there or not: an environment with them may be."""
        return self._read(self.folder / "sources" / f"{key}.json", SourceRecord)

    def has_wheels(self, record: SourceRecord) -> bool:
        return all(map(self._is_there, record.wheels))

    def sources(self) -> list[SourceRecord]:
        return self._all("sources", SourceRecord)

    def keep_source(self, record: SourceRecord, log: Path | None = None) -> None:
        if log is not None:
            keep_log(log, self.folder / "sources" / f"{record.key}.log")
        self._write(self.folder / "sources" / f"{record.key}.json", record)
        self.forget_failure(record.key)

    def forget_source(self, key: str) -> None:
        for ending in ("json", "log"):
            (self.folder / "sources" / f"{key}.{ending}").unlink(missing_ok=True)

    def import_source(self, record: SourceRecord, files: Iterable[Path]) -> None:
        """Take over what a source gave to another cache, so that nothing is built here. Raises BenchmarkError if the
        files are not the wheels of the record."""
        by_name = {path.name: path for path in files}
        for wheel in record.wheels:
            if (path := by_name.get(wheel.file)) is None:
                raise BenchmarkError(f"{record.address}: the wheel {wheel.file} is missing")
            if (found := sha256_of(path)) != wheel.sha256:
                raise BenchmarkError(f"{path}: has the SHA-256 {found}, not {wheel.sha256}, which its record says")
        with self.telling_no_space(), self.making(f"source-{record.key}"):
            for wheel in record.wheels:
                self.keep_wheel(by_name[wheel.file])
            self.keep_source(record)

    # Environments

    def environment_folder(self, key: str) -> Path:
        return self.folder / "environments" / key

    def environment(self, key: str) -> EnvironmentRecord | None:
        """The record of an environment that was made to its end. Whether it still is as it was, `contents` says."""
        return self._read(self.environment_folder(key) / WHOLE, EnvironmentRecord)

    def environments(self) -> list[EnvironmentRecord]:
        folders = sorted((self.folder / "environments").iterdir())
        return [record for folder in folders if (record := self.environment(folder.name)) is not None]

    def keep_environment(self, record: EnvironmentRecord, log: Path) -> None:
        keep_log(log, self.environment_folder(record.key) / LOG)
        self._write(self.environment_folder(record.key) / WHOLE, record)
        self.forget_failure(record.key)

    def touch(self, key: str) -> None:
        os.utime(self.environment_folder(key) / WHOLE)

    # Failures

    def failure(self, key: str) -> FailureRecord | None:
        return self._read(self.folder / "failures" / f"{key}.json", FailureRecord)

    def failures(self) -> list[FailureRecord]:
        return self._all("failures", FailureRecord)

    def failure_log(self, key: str) -> Path:
        return self.folder / "failures" / f"{key}.log"

    def keep_failure(self, record: FailureRecord, log: Path) -> None:
        keep_log(log, self.failure_log(record.key))
        self._write(self.folder / "failures" / f"{record.key}.json", record)

    def forget_failure(self, key: str) -> bool:
        path = self.folder / "failures" / f"{key}.json"
        there = path.exists()
        path.unlink(missing_ok=True)
        self.failure_log(key).unlink(missing_ok=True)
        return there

    # Files

    def _write(self, path: Path, record: CacheRecord) -> None:
        scratch = path.with_name(f".{secrets.token_hex(8)}")
        try:
            scratch.write_text(record.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)

    def _read(self, path: Path, kind: type[Record]) -> Record | None:
        """A record; None if there is none, or none that can be read, which is as good as none."""
        try:
            record = kind.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
        return record if record.key in path.parts or path.stem == record.key else None

    def _all(self, folder: str, kind: type[Record]) -> list[Record]:
        found = (self._read(path, kind) for path in sorted((self.folder / folder).glob("*.json")))
        return [record for record in found if record is not None]

    @contextmanager
    def telling_no_space(self) -> Iterator[None]:
        """What cannot be written in the block is a BenchmarkError: NoSpace if the disk is full."""
        try:
            yield
        except OSError as error:
            raise self.no_space(error) from error

    def is_full(self) -> bool:
        try:
            return shutil.disk_usage(self.folder).free < _NEXT_TO_NOTHING
        except OSError:
            return False

    def no_space(self, error: OSError | None = None) -> BenchmarkError:
        """What to raise for a file that could not be written: NoSpace if the disk is full."""
        if error is not None and error.errno not in FULL:
            return BenchmarkError(f"{error.filename or self.folder}: cannot be written: {error.strerror or error}")
        limit = "the largest size of a file is reached" if error is not None and error.errno == errno.EFBIG else ""
        try:
            free = f"{shutil.disk_usage(self.folder).free / 2**30:.1f} GiB are free"
        except OSError:
            free = "the disk is full"
        return NoSpace(
            f"{self.folder}: no space for the build ({limit or free}); make room, or shrink the cache with "
            "`torchbench builds gc --max-gib N`"
        )


class Lease:
    """Keeps an entry of the cache from being removed."""

    def __init__(self, descriptor: int):
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lease_of(interpreter: Path) -> Lease | None:
    """A lease on the environment that an interpreter lies in, which counts as used now; None if that is in no cache."""
    folder = interpreter.absolute().parent.parent
    place = folder.parent.parent
    if folder.parent.name != "environments" or not (place / MARK).is_file():
        return None
    cache = BuildCache(place, 0)
    try:
        cache.touch(folder.name)
        return cache.use(f"environment-{folder.name}")
    except OSError:  # it was removed already, or is of another user or read-only, and nobody here can remove it
        return None


@contextmanager
def kept(interpreter: Path) -> Iterator[None]:
    """Whatever cache the interpreter lies in keeps it in the block."""
    with lease_of(interpreter) or contextlib.nullcontext():
        yield


@contextmanager
def _open(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _gib(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise BenchmarkError(f"{LIMIT_VARIABLE}={text!r}: is not a number of GiB") from error
