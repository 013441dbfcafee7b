"""What is needed to install the build of a night again: its pin, and the version of each distribution. A small object a
build, `builds/<build>.json`, for as long as the store lives."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.errors import BaselineError
from baselines.store.interface import Store, check_part, update
from torchbenchmark.builds.installation import Installed
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.yaml_files import first_problem

BUILDS = "builds"
SCHEMA = 1


class StoredBuild(BaseModel):
    """A build of a night. Two nights may come to one build by different pins; the first that knows all stays."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["build"] = "build"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    build: str  # its id
    pin: PinnedBuild
    distributions: dict[str, Installed] = {}  # all that pip installed; empty where only the pin is known

    @property
    def versions(self) -> dict[str, str]:
        return {name: one.version for name, one in self.distributions.items()}


def store_build(
    store: Store, build: str, pin: PinnedBuild, distributions: Mapping[str, Installed] | None = None
) -> StoredBuild:
    """Store how a build was pinned. Returns what is stored then: what was there before stays, unless it knew less."""
    ours = StoredBuild(build=build, pin=pin, distributions=dict(sorted((distributions or {}).items())))
    key = _key(build)

    def known(content: bytes | None) -> bytes:
        if content is not None and (_decode(store, key, content).distributions or not ours.distributions):
            return content
        return ours.model_dump_json(by_alias=True, indent=1).encode() + b"\n"

    return _decode(store, key, update(store, key, known))


def stored_build(store: Store, build: str) -> StoredBuild | None:
    """How a build was pinned; None if it was not, or by nobody who stored it."""
    content = store.read_if_present(_key(build))
    return None if content is None else _decode(store, _key(build), content)


def _key(build: str) -> str:
    return f"{BUILDS}/{check_part(build, 'build id')}.json"


def _decode(store: Store, key: str, content: bytes) -> StoredBuild:
    try:
        return StoredBuild.model_validate_json(content)
    except ValidationError as error:
        raise BaselineError(
            f"{store.location}: {key}: {first_problem(error)}; remove it; the next night of the build stores it anew"
        ) from error
