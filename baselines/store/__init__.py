"""Stores: `open_store` picks one by its location."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from baselines.errors import BaselineError
from baselines.store.folder import FolderStore
from baselines.store.interface import Store, Versioned, update

__all__ = ["Store", "Versioned", "open_store", "update"]


def open_store(location: str, *, must_exist: bool = False) -> Store:
    """The store at `s3://bucket/prefix`, a folder's path or a `file://` address.

    Without `must_exist`, the first write makes the folder; a bucket has to be there.
    """
    scheme = require_location(location)
    if scheme == "s3":
        return _open_bucket(location, must_exist)
    return _open_folder(location, scheme, must_exist)


def require_location(location: str) -> str:
    """The kind of store that this names, empty for a folder; nothing is opened. Raises BaselineError for none."""
    if not location:
        raise BaselineError("the store has an empty location; give a folder or s3://bucket/prefix")
    scheme, named, rest = location.partition("://")
    if not named:
        return ""
    if scheme not in ("s3", "file"):
        raise BaselineError(
            f"{location}: no store of the kind {scheme}://; give a folder, file:///folder or s3://bucket"
        )
    if scheme == "s3" and not rest.partition("/")[0]:
        raise BaselineError(f"{location}: names no bucket; a location is s3://bucket/prefix")
    return scheme


def _open_bucket(location: str, must_exist: bool) -> Store:
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    if "@" in bucket:
        raise BaselineError("s3://…@…: credentials do not belong into a location; set them where boto3 looks for them")
    try:
        from baselines.store.s3 import S3Store
    except ImportError as error:
        raise BaselineError(
            f"{location}: stores in S3 need boto3; install it with: pip install 'torchbench-sentinel[bot]'"
        ) from error
    store = S3Store(bucket, prefix.rstrip("/"))
    if must_exist and not store.exists():
        raise BaselineError(f"{location}: nothing is stored there; check the prefix (the first run makes the store)")
    return store


def _open_folder(location: str, scheme: str, must_exist: bool) -> Store:
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
