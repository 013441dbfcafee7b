"""The records of the cache of builds, one JSON file each."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from torchbenchmark.builds.installation import Installed
from torchbenchmark.builds.pinned import PinnedWheel

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class CacheRecord(BaseModel):
    """What every record says. `key` is the digest of all that determines the thing."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[1] = Field(1, alias="schema")
    key: Sha256
    address: str  # exact, without credentials
    ended: datetime


class CachedWheel(PinnedWheel):
    """A wheel that lies in the cache."""

    sha256: Sha256
    bytes: int


class SourceRecord(CacheRecord):
    """The wheels that a source gave. With its wheels it goes into another cache by `import_source`."""

    wheels: tuple[CachedWheel, ...]
    etag: str | None = None  # of an address that may mean another wheel later


class EnvironmentRecord(CacheRecord):
    """What stands in a virtual environment that is whole."""

    python: str
    wheels: tuple[CachedWheel, ...]
    distributions: dict[str, Installed]
    contents: Sha256  # over the names and sizes of all files
    bytes: int


class FailureRecord(CacheRecord):
    """Why a source or an environment could not be made."""

    what: str
    lines: tuple[str, ...]
