"""What a store must offer: immutable objects, and small mutable ones that change by conditional write only.

Keys are slash paths. The interface is what S3 gives (a version is an etag there), so that a folder and a bucket pass
the same tests.
"""

import random
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from baselines.errors import BaselineError, OtherContentError

# A leading dot is left to the store's own files (its lock, what a killed writer left); it also rules out `..`.
_PART = re.compile(r"[A-Za-z0-9_=@+-][A-Za-z0-9._=@+-]*")
_ATTEMPTS = 100  # each lost attempt means that another writer got on; so many in a row are not contention
_LONGEST_PAUSE_S = 0.05


class Versioned(NamedTuple):
    """The content of an object and the version that a conditional write names to replace exactly this content."""

    content: bytes
    version: str


class Store(Protocol):
    """Where runs, histories, pins and alerts are kept."""

    @property
    def location(self) -> str:
        """What `open_store` was given; for messages."""

    def create(self, key: str, content: bytes) -> None:
        """Store an immutable object. The same bytes again are a success, so that a killed writer can start anew.

        Raises OtherContentError if the key holds other content.
        """
        if not self.write_if(key, content, None) and self.read_if_present(key) != content:
            raise OtherContentError(
                f"{self.location}: {key} exists with other content, and is immutable; use a new key"
            )

    def read(self, key: str) -> bytes:
        """The content of an object. Raises BaselineError if there is none."""
        content = self.read_if_present(key)
        if content is None:
            raise BaselineError(f"{self.location}: there is no {key}")
        return content

    def read_if_present(self, key: str) -> bytes | None: ...

    def list(self, prefix: str) -> list[str]:
        """The keys that start with `prefix` (as text: it need not end at a slash), sorted."""

    def read_versioned(self, key: str) -> Versioned | None: ...

    def write_if(self, key: str, content: bytes, version: str | None) -> bool:
        """Replace the object if it still has this version; None: only if there is none. False if that was lost."""

    def create_from_file(self, key: str, path: Path) -> bool:
        """Store a file, of any size, as an immutable object. False if the key is taken: what it holds is not read, so
        that the key has to say what that is, such as by a digest."""

    def read_to_file(self, key: str, path: Path) -> bool:
        """Write an object, of any size, into a file, which is whole or not there. False if there is no such object."""

    def size(self, key: str) -> int | None:
        """Bytes of an object; None if there is none."""

    def delete(self, key: str) -> None:
        """Remove an object; one that is gone already is a success. For what nobody may need any more only."""


@contextmanager
def coming_to(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place when the block has ended well, if it is there then."""
    scratch = path.with_name(f".{secrets.token_hex(8)}")
    try:
        yield scratch
        if scratch.exists():
            scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def check_key(key: str) -> str:
    """The key, if every part of it can be a file name and an S3 key alike."""
    for part in key.split("/"):
        check_part(part, f"key {key!r}")
    return key


def check_part(part: str, what: str) -> str:
    """One part of a key; `what` names it in the error."""
    if not _PART.fullmatch(part):
        raise BaselineError(
            f"{what}: {part!r} cannot be part of a key of a store; use letters, digits and . _ = @ + -, no leading dot"
        )
    return part


def check_prefix(prefix: str) -> str:
    """A prefix of keys: whole parts, then the beginning of one, which may be empty."""
    *whole, last = prefix.split("/")
    for part in (*whole, last) if last else whole:
        check_part(part, f"prefix {prefix!r}")
    return prefix


def update(store: Store, key: str, change: Callable[[bytes | None], bytes]) -> bytes:
    """Read, change, write conditionally, and again if another writer was faster. Returns what is stored then.

    `change` gets the content that is stored (None if nothing is) and may be called several times.
    """
    for attempt in range(_ATTEMPTS):
        before = store.read_versioned(key)
        content = change(before.content if before else None)
        if before is not None and before.content == content:
            return content
        if store.write_if(key, content, before.version if before else None):
            return content
        time.sleep(random.uniform(0, min(_LONGEST_PAUSE_S, 0.002 * 2**attempt)))
    raise BaselineError(f"{store.location}: {key} was changed by others {_ATTEMPTS} times in a row; try again later")
