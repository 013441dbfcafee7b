"""The frozen build of the canaries: made or found once, recorded with all that its interpreter holds, and from then on
refused if it is any other. A canary that has changed unseen is worse than none."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import exact_address, provide
from torchbenchmark.builds.provider import digest
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.canaries.settings import SUBJECT, CanarySettings
from torchbenchmark.environment import Interpreter, inspect_interpreter
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import Build
from torchbenchmark.terminal import console
from torchbenchmark.yaml_files import first_problem

FOLDER = "frozen"  # of the cache of builds: one record for each frozen build
MOST_NAMED = 5  # differences in an error


class FrozenRecord(BaseModel):
    """What a frozen build was when it was frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["frozen build"] = "frozen build"
    schema_version: Literal[1] = Field(1, alias="schema")
    frozen: AwareDatetime
    build: Build
    distributions: dict[str, str]  # all that the interpreter holds, name -> version
    lock: str


@dataclass(frozen=True)
class Frozen:
    """A frozen build that is ready, and still what it was when it was frozen."""

    interpreter: Path
    build: Build
    distributions: Mapping[str, str]
    lock: str
    since: datetime


class FrozenBuildChanged(BenchmarkError):
    """What is there is not what was frozen."""


def lock_of(build: Build, distributions: Mapping[str, str]) -> str:
    """The fingerprint of a build and of every distribution beside it, the same on every machine."""
    content = json.dumps({"build": build.id, "distributions": dict(distributions)}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


@contextmanager
def frozen_build(settings: CanarySettings, cache: BuildCache, *, anew: bool = False) -> Iterator[Frozen]:
    """The frozen build, kept from being removed in the block; made in the cache if need be.

    The first time it is recorded; `anew` records it again as it is now. Raises FrozenBuildChanged if it is not what was
    recorded, or has not the `lock` of the configuration, and BenchmarkError if it cannot be had at all.
    """
    with ExitStack() as leases:
        interpreter = _interpreter(settings, cache, leases)
        found = inspect_interpreter(interpreter, SUBJECT)
        lock = lock_of(found.build, found.distributions)
        if settings.lock not in (None, lock):
            raise FrozenBuildChanged(
                f"{interpreter}: has the lock {lock}, and `canary.lock` in the configuration says {settings.lock}; "
                "bring back what that was, or set `canary.lock` anew: the canaries then begin again"
            )
        path = _record_path(settings, cache)
        with cache.making(f"{FOLDER}-{path.stem}"), cache.telling_no_space():
            record = None if anew else _read(path)
            if record is None:
                now = datetime.now(UTC)
                record = FrozenRecord(frozen=now, build=found.build, distributions=found.distributions, lock=lock)
                _write(path, record)
        if record.lock != lock:
            raise FrozenBuildChanged(_changed(record, found, interpreter))
        yield Frozen(interpreter, found.build, found.distributions, lock, record.frozen)


def frozen_before(settings: CanarySettings, cache: BuildCache) -> FrozenRecord | None:
    """What was frozen earlier on this machine, be it still there or not; None if nothing was, or it cannot be read."""
    try:
        return _read(_record_path(settings, cache))
    except BenchmarkError:
        return None


def _interpreter(settings: CanarySettings, cache: BuildCache, leases: ExitStack) -> Path:
    if settings.python is not None:
        return settings.python
    assert settings.build is not None
    address = parse_address(settings.build, SUBJECT)
    how = BuildSettings(requirements=settings.requirements, index=settings.index, extra_index=settings.extra_index)
    if (exact := exact_address(address, cache, how, subject=SUBJECT)) != settings.build:
        raise BenchmarkError(
            f"`canary.build` in the configuration: {settings.build} means another build tomorrow; write {exact}"
        )
    return leases.enter_context(provide(address, cache, how, subject=SUBJECT)).interpreter


def _record_path(settings: CanarySettings, cache: BuildCache) -> Path:
    """By what was asked for, not by what came of it: that is what must not change."""
    asked = settings.model_dump(mode="json", include={"build", "requirements", "index", "extra_index"})
    if settings.python is not None:  # in a plan it is relative
        asked["python"] = str(Path(shutil.which(settings.python) or settings.python).absolute())
    return cache.folder / FOLDER / f"{digest(asked)}.json"


def _read(path: Path) -> FrozenRecord | None:
    try:
        return FrozenRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:  # not as good as none: what comes now may not be what was frozen
        raise BenchmarkError(
            f"{path}: {first_problem(error)}; the record of the frozen build is damaged: freeze what is there with "
            "`torchbench canary --anew`"
        ) from error


def _write(path: Path, record: FrozenRecord) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    scratch.write_text(record.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)
    console.print(
        f"frozen: build {record.build.id}, lock {record.lock}, {len(record.distributions)} distributions", markup=False
    )


def _changed(record: FrozenRecord, found: Interpreter, interpreter: Path) -> str:
    differing = _differences(record.distributions, found.distributions)
    differing += [
        f"{what} {was} -> {now}"
        for what, was, now in (
            ("Python", record.build.python, found.build.python),
            ("commit", record.build.commit, found.build.commit),
        )
        if was != now
    ]
    for was, now in (
        (record.build.libraries, found.build.libraries),
        (record.build.startup_code, found.build.startup_code),
    ):
        differing += _differences(was, now)
    more = f" and {len(differing) - MOST_NAMED} more" if len(differing) > MOST_NAMED else ""
    return (
        f"{interpreter}: is not what was frozen on {record.frozen:%Y-%m-%d} (build {record.build.id}, lock "
        f"{record.lock}): {', '.join(differing[:MOST_NAMED])}{more}; bring that back, or freeze what is there now with "
        "`torchbench canary --anew`: the canaries then begin again"
    )


def _differences(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{name} {was.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in sorted(was.keys() | now.keys())
        if was.get(name) != now.get(name)
    ]
