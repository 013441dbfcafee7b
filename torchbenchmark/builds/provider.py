"""What a provider of builds is: a form of address, and where its wheels come from. One file per provider, registered in
build_address.py."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.builds.target import Target
from torchbenchmark.builds.workshop import Workshop

SHA = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Request:
    """What else, beside its address, says which build is meant."""

    subject: str  # normalised
    settings: BuildSettings
    cache: BuildCache
    base: Path  # the interpreter that makes the virtual environment
    target: Target  # what that is
    retry: bool = False
    plain: bool = (
        False  # for a command of the user's: it needs neither torch nor numpy, and the subject is not imported
    )

    @property
    def platform(self) -> dict[str, str]:
        """What wheels depend on, as facts of a source."""
        return {"python": self.target.python, "platform": self.target.tags[0]}


@dataclass(frozen=True)
class Fetched:
    """What a source gave: wheels that lie in the workshop, unless they are those that it gave before."""

    wheels: tuple[Path, ...]
    etag: str | None = None
    unchanged: bool = False


@dataclass(frozen=True)
class WheelSource:
    """Where the wheels of a build come from, and what determines them."""

    address: str  # exact: it names the same wheels tomorrow
    facts: Mapping[str, object]  # all that determines the wheels, and nothing else; only their digest is stored
    make: Callable[[Workshop], Fetched]
    lasting: bool = True  # False where the same address may mean other wheels later: it is asked again

    @property
    def key(self) -> str:
        return source_key(self.facts)


def source_key(facts: Mapping[str, object]) -> str:
    return digest({"kind": "source", **facts})


class BuildAddress(Protocol):
    """One form of address, a frozen dataclass. `parse` and `str` are inverse, and neither asks anybody."""

    provider: ClassVar[str]

    @classmethod
    def parse(cls, what: str) -> Self:
        """The address from what stands after `provider:`. Raises ValueError, which repeats no part of a URL."""

    def __str__(self) -> str: ...

    def exact(self, request: Request) -> Self:
        """The address that means the same build tomorrow: a date for latest, a commit for a branch."""

    def source(self, request: Request) -> WheelSource | Path:
        """Where the wheels come from, or an interpreter that holds the build already."""


def digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
