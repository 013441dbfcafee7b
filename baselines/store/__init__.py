"""Stores: `open_store` picks one by its location."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from baselines.errors import BaselineError
from baselines.store.folder import FolderStore
from baselines.store.interface import Store, Versioned, update

__all__ = ["Store", "Versioned", "open_store", "update"]


def open_store(location: str, *, must_exist: bool = False) -> Store:
    """The store at a folder's path or `file://` address. Without `must_exist`, the first write makes the folder."""
    if not location:
        raise BaselineError("the store has an empty location; give a folder")
    scheme = location.partition("://")[0] if "://" in location else ""
    if scheme == "s3":
        raise BaselineError(
            f"{location}: stores in S3 come with the `bot` extra and are not in this version; use a folder"
        )
    if scheme not in ("", "file"):
        raise BaselineError(f"{location}: no store of the kind {scheme}://; give a folder or file:///folder")
    root = Path(location)
    if scheme == "file":
        address = urlsplit(location)
        if address.netloc not in ("", "localhost") or not address.path:
            raise BaselineError(f"{location}: a file address needs a whole path, as in file:///folder")
        root = Path(unquote(address.path))
    if root.exists() and not root.is_dir():
        raise BaselineError(f"{location}: is a file; a store is a folder")
    if must_exist and not root.is_dir():
        raise BaselineError(f"{location}: no such store; check the path (a store is made by the first run put into it)")
    return FolderStore(root)
