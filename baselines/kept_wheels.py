"""Wheels of builds, kept so that a build can be installed when no index has it any more: `wheels/<sha256>/<file>`, each
once however many builds have it, and for each build a list of its wheels, `kept/<build>.json`.

A list is written before its wheels are looked for, as a claim: from then on none of them is removed. It is marked as
whole when all of them are there. Removing goes the other way: first the list, then the wheels that are on no list.
"""

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.errors import BaselineError
from baselines.needed_nights import KEEP_NIGHTS, NightsOf, looked_back_to, newest, no_others
from baselines.runs import list_series
from baselines.series import UtcTime
from baselines.store.interface import Store, check_part, update
from torchbenchmark.yaml_files import first_problem

WHEELS, KEPT = "wheels", "kept"
SCHEMA = 1
LEAST_AGE = timedelta(days=1)  # of a list that is removed: a younger one is of tonight's build, or still being filled


class KeptWheel(BaseModel):
    """One wheel of a build."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def key(self) -> str:
        return f"{WHEELS}/{self.sha256}/{check_part(self.file, 'wheel')}"


class KeptBuild(BaseModel):
    """The wheels of a build."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["kept build"] = "kept build"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    nonce: str  # of the last writer: no two writes have the same bytes
    build: str
    since: UtcTime
    whole: bool  # False: a claim, while its wheels come
    wheels: Annotated[tuple[KeptWheel, ...], Field(min_length=1)]


# Gives the files of wheels that the store has not got, by the name of the file.
GetFiles = Callable[[Collection[KeptWheel]], Mapping[str, Path]]


def keep(
    store: Store, build: str, wheels: Collection[KeptWheel], get: GetFiles, now: datetime | None = None
) -> list[KeptWheel]:
    """Keep the wheels of a build; those that are there already are neither got nor stored again. Returns those that
    were stored. Killed at any moment, the next call goes on.

    Raises BaselineError if a file is not what its wheel says; what `get` raises passes.
    """
    ours = tuple(sorted(wheels, key=lambda wheel: wheel.file))
    for wheel in ours:
        check_part(wheel.file, "wheel")
    claim = _write(store, KeptBuild(nonce="", build=build, since=now or datetime.now(UTC), whole=False, wheels=ours))
    missing = [wheel for wheel in claim.wheels if store.size(wheel.key) is None]
    files = get(missing) if missing else {}
    for wheel in missing:
        path = files.get(wheel.file)
        if path is None or _sha256(path) != wheel.sha256:
            raise BaselineError(f"{path or wheel.file}: is not the wheel {wheel.file} of SHA-256 {wheel.sha256}")
        store.create_from_file(wheel.key, path)
    if gone := [wheel.file for wheel in claim.wheels if store.size(wheel.key) is None]:
        raise BaselineError(f"{store.location}: {', '.join(gone)} was removed while it was kept; it is tried again")
    _write(store, claim.model_copy(update={"whole": True}))
    return missing


def kept(store: Store) -> dict[str, KeptBuild]:
    """The builds whose wheels are all there, by id."""
    return {one.build: one for one in _lists(store).values() if one.whole}


def kept_builds(store: Store) -> list[str]:
    """The builds of which wheels are kept, or were to be."""
    return [key.rpartition("/")[2].removesuffix(".json") for key in store.list(f"{KEPT}/")]


def kept_build(store: Store, build: str) -> KeptBuild | None:
    """The wheels of a build; None if they are not kept, or not all of them."""
    content = store.read_if_present(_key(build))
    found = None if content is None else _decode(store, _key(build), content)
    return found if found is not None and found.whole else None


def fetch(store: Store, build: KeptBuild, folder: Path) -> list[Path]:
    """Write the wheels of a build into a folder. Raises BaselineError if one is not there, or is damaged."""
    paths = []
    for wheel in build.wheels:
        path = folder / wheel.file
        if not store.read_to_file(wheel.key, path):
            raise BaselineError(f"{store.location}: there is no {wheel.key}, a wheel of build {build.build}")
        if (found := _sha256(path)) != wheel.sha256:
            raise BaselineError(f"{store.location}: {wheel.key}: is damaged, its SHA-256 is {found}; remove it")
        paths.append(path)
    return paths


def needed_builds(
    store: Store, builds: Iterable[str], nights: int = KEEP_NIGHTS, others: NightsOf = no_others
) -> set[str]:
    """Which of the builds pins name, the newest nights of a class measured, or anything looks back to.

    Told from the names of the runs alone, so that none that cannot be read makes a build seem unneeded. Raises
    BaselineError if what a class looks back to cannot be read.
    """
    runs: set[str] = set()
    for suite, machine_class in list_series(store):
        runs |= newest(store, suite, machine_class, nights)
        runs |= looked_back_to(store, suite, machine_class, others)
    measured = {run.rpartition("/")[2][len("2026-11-28-") :] for run in runs}  # <build>-<run>
    return {build for build in builds if any(name.startswith(f"{build}-") for name in measured)}


@dataclass(frozen=True)
class RemovedWheels:
    """What a removal came to."""

    builds: tuple[str, ...]
    wheels: tuple[str, ...]  # their keys
    bytes: int


def remove_wheels(
    store: Store, needed: Collection[str], *, remove: bool = True, now: datetime | None = None
) -> RemovedWheels:
    """Remove the wheels of the builds that are not needed, but for those that a build which stays has too. Without
    `remove`, only say which. Killed at any moment, the next call goes on.

    Raises BaselineError, and has removed nothing, if a list cannot be read: its wheels may be needed.
    """
    oldest = (now or datetime.now(UTC)) - LEAST_AGE
    lists = _lists(store)
    unneeded = {key: one for key, one in lists.items() if one.build not in needed and one.since < oldest}
    stay = {key: one for key, one in lists.items() if key not in unneeded}
    if remove:
        for key, one in list(unneeded.items()):
            if store.read_if_present(key) == _encode(one):
                store.delete(key)
            else:  # it is kept anew meanwhile
                stay[key] = unneeded.pop(key)
    wheels, size = [], 0
    for key in store.list(f"{WHEELS}/"):
        if remove:
            stay = _lists(store, known={name: one for name, one in stay.items() if one.whole})
        if key in {wheel.key for one in stay.values() for wheel in one.wheels}:
            continue
        wheels.append(key)
        size += store.size(key) or 0
        if remove:
            store.delete(key)
    return RemovedWheels(tuple(one.build for one in unneeded.values()), tuple(wheels), size)


def _lists(store: Store, known: Mapping[str, KeptBuild] | None = None) -> dict[str, KeptBuild]:
    """All lists, by key; those that are `known` are not read again, as the wheels of a whole one never change."""
    known = known or {}
    found = {}
    for key in store.list(f"{KEPT}/"):
        if key in known:
            found[key] = known[key]
        elif (content := store.read_if_present(key)) is not None:
            found[key] = _decode(store, key, content)
    return found


def _write(store: Store, ours: KeptBuild) -> KeptBuild:
    """Write a list, unless a whole one is there: then only its age is changed. Returns what is stored then."""
    key = _key(ours.build)

    def written(content: bytes | None) -> bytes:
        there = None if content is None else _decode(store, key, content)
        if there is None or not there.whole:
            return _encode(ours.model_copy(update={"nonce": secrets.token_hex(8)}))
        return _encode(there.model_copy(update={"nonce": secrets.token_hex(8), "since": ours.since}))

    return _decode(store, key, update(store, key, written))


def _key(build: str) -> str:
    return f"{KEPT}/{check_part(build, 'build id')}.json"


def _encode(one: KeptBuild) -> bytes:
    return one.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def _decode(store: Store, key: str, content: bytes) -> KeptBuild:
    try:
        return KeptBuild.model_validate_json(content)
    except ValidationError as error:
        raise BaselineError(
            f"{store.location}: {key}: {first_problem(error)}; remove it, if the wheels of its build are not needed"
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
