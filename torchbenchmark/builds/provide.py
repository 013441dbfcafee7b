"""Gives the interpreter of a build that an address names: from the cache, or made and kept there."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from packaging.version import InvalidVersion, Version

from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.build_errors import BuildFailed, BuildUnavailable, CommandFailed
from torchbenchmark.builds.cache import LOG, WHOLE, BuildCache, lease_of
from torchbenchmark.builds.cache_records import CachedWheel, EnvironmentRecord, FailureRecord, SourceRecord
from torchbenchmark.builds.eviction import shrink
from torchbenchmark.builds.folders import contents_of, remove, size_of
from torchbenchmark.builds.installation import verify_interpreter
from torchbenchmark.builds.pip import fill_environment
from torchbenchmark.builds.plain import distributions_in
from torchbenchmark.builds.provider import BuildAddress, Request, WheelSource, digest
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.builds.target import ask_target
from torchbenchmark.builds.venv import VenvAddress
from torchbenchmark.builds.workshop import (
    Workshop,
    all_lines,
    blames_network,
    last_lines,
    says_full,
    without_credentials,
)
from torchbenchmark.environment import Interpreter, normalised_name
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.terminal import console

ATTEMPTS = 3  # to have wheels and environment at once while another process removes


@dataclass
class ProvidedBuild:
    """A build that is ready. In the cache it is kept from being removed until it is closed or this process ends."""

    address: str  # exact: the same build tomorrow
    interpreter: Path
    # What it said when it was verified: asked again, it would import torch once more. A plain one is not asked.
    holds: Interpreter | None
    wheels: tuple[CachedWheel, ...] = ()  # its own; none where it was there already (venv)
    source: SourceRecord | None = None  # with the wheels, what another cache needs to have the build
    _leases: ExitStack = field(default_factory=ExitStack, repr=False)

    def close(self) -> None:
        self._leases.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def provide(
    address: BuildAddress | str,
    cache: BuildCache,
    settings: BuildSettings | None = None,
    *,
    subject: str = "torch",
    python: Path | None = None,
    retry: bool = False,
    plain: bool = False,
) -> ProvidedBuild:
    """The build that an address names, its interpreter verified: it imports torch and the subject and can measure.

    `python` makes its virtual environment (default: this interpreter). `retry` tries again what failed before. Of a
    `plain` build no more is asked than that the subject is installed.
    Raises BuildNotFound, BuildUnavailable, BuildFailed (remembered), NoSpace, or BenchmarkError for a bad address.
    """
    subject = normalised_name(subject)
    request = ask(cache, settings, subject=subject, python=python, retry=retry, plain=plain)
    address = parse_address(address, subject) if isinstance(address, str) else address
    with cache.telling_no_space():
        source = address.source(request)
        if isinstance(source, Path):
            return _provide_ready(source, address, request)
        return _provide_cached(source, request)


@contextmanager
def named_build(text: str, subject: str = "torch", settings: BuildSettings | None = None) -> Iterator[Path]:
    """The interpreter that a command's `--python` names: a path or a command as it stands, or the build of an address,
    made if need be and kept in the block."""
    if Path(text).exists() or shutil.which(text):
        yield Path(text)
        return
    address = parse_address(text, subject)
    if isinstance(address, VenvAddress):
        yield Path(address.path)
        return
    with provide(address, BuildCache.open(), settings, subject=subject) as build:
        yield build.interpreter


def exact_address(
    address: BuildAddress | str,
    cache: BuildCache,
    settings: BuildSettings | None = None,
    *,
    subject: str = "torch",
    python: Path | None = None,
) -> str:
    """The address that means the same build tomorrow: a commit for a branch, a date for latest. Makes no build."""
    request = ask(cache, settings, subject=subject, python=python)
    address = parse_address(address, request.subject) if isinstance(address, str) else address
    with cache.telling_no_space():
        return str(address.exact(request))


def ask(
    cache: BuildCache,
    settings: BuildSettings | None,
    *,
    subject: str = "torch",
    python: Path | None = None,
    retry: bool = False,
    plain: bool = False,
) -> Request:
    named = python or Path(sys.executable)
    base = Path(shutil.which(named) or named).absolute()
    return Request(normalised_name(subject), settings or BuildSettings(), cache, base, ask_target(base), retry, plain)


def _provide_ready(interpreter: Path, address: BuildAddress, request: Request) -> ProvidedBuild:
    holds, _ = _verified(interpreter, request)
    leases = ExitStack()
    if (lease := lease_of(interpreter)) is not None:  # `torchbench build` has printed its path
        leases.enter_context(lease)
    return ProvidedBuild(str(address.exact(request)), interpreter, holds, _leases=leases)


class _WheelsAreGone(Exception):
    """The wheels of a record were removed to make room, or are damaged: they have to be got again."""


def _provide_cached(source: WheelSource, request: Request) -> ProvidedBuild:
    cache = request.cache
    for attempt in range(ATTEMPTS):
        with ExitStack() as leases:
            record = _wheels_of(source, request, leases, wanted=attempt > 0)
            _require_subject(record, request)
            try:
                key, holds = _environment_of(record, request, leases)
            except _WheelsAreGone:
                continue
            cache.touch_wheels(record.wheels)  # after the environment, which is the sooner made anew and goes first
            keep = {f"environment-{key}", *(f"wheel-{wheel.sha256}" for wheel in record.wheels)}
            if removed := shrink(cache, keep=keep):
                console.print(f"{cache.folder}: removed {len(removed)} entries to keep its size", markup=False)
            interpreter = cache.environment_folder(key) / "bin" / "python"
            return ProvidedBuild(source.address, interpreter, holds, record.wheels, record, leases.pop_all())
    raise BenchmarkError(
        f"{cache.folder}: the wheels of {source.address} vanish as soon as they are there; who does it?"
    )


def _wheels_of(source: WheelSource, request: Request, leases: ExitStack, *, wanted: bool) -> SourceRecord:
    """Which wheels a source gives and, if they are `wanted`, the wheels; they stay while the leases are held."""
    cache, key = request.cache, source.key
    with cache.making(f"source-{key}") as lock:
        known = cache.source(key)
        if known is None or not source.lasting or (wanted and not cache.has_wheels(known)):
            if source.lasting:
                _refuse_what_failed(key, request)
            with _remembered(key, source.address, request, lock) as shop:
                known = _make(source, known, shop, cache)
        for wheel in known.wheels:
            leases.enter_context(cache.use(f"wheel-{wheel.sha256}"))
    return known


def _require_subject(record: SourceRecord, request: Request) -> None:
    names = [wheel.name for wheel in record.wheels]
    if request.subject not in names:
        raise BuildFailed(
            f"{record.address}: gives {', '.join(names)} and no {request.subject}, which is the subject; name a build "
            "that brings it, or another --subject"
        )


def _make(source: WheelSource, known: SourceRecord | None, shop: Workshop, cache: BuildCache) -> SourceRecord:
    console.print(f"getting the wheels of {source.address}", markup=False)
    fetched = source.make(shop)
    if fetched.unchanged and known is not None:
        return known
    if not fetched.wheels:
        raise BuildFailed(f"{source.address}: gives no wheel")
    try:
        wheels = tuple(cache.keep_wheel(path, move=True) for path in fetched.wheels)
    except BenchmarkError as error:
        raise BuildFailed(f"{source.address}: {error}") from error
    if len({wheel.name for wheel in wheels}) != len(wheels):
        raise BuildFailed(f"{source.address}: gives two wheels of one name: {', '.join(one.file for one in wheels)}")
    record = SourceRecord(
        key=source.key, address=source.address, ended=datetime.now(UTC), wheels=wheels, etag=fetched.etag
    )
    cache.keep_source(record, shop.log)
    return record


def _environment_of(record: SourceRecord, request: Request, leases: ExitStack) -> tuple[str, Interpreter | None]:
    """The key of the virtual environment with these wheels, and what it holds."""
    cache, settings = request.cache, request.settings
    facts = {
        "kind": "environment",
        "subject": request.subject,  # which is verified in it
        "wheels": sorted(wheel.sha256 for wheel in record.wheels),
        "python": request.target.version,
        "platform": request.target.tags[0],
        "requirements": sorted(settings.requirements),
        "without_dependencies": sorted(settings.without_dependencies),
        "indexes": [settings.index, settings.extra_index],
        **({"plain": True} if request.plain else {}),
    }
    key = digest(facts)
    folder = cache.environment_folder(key)
    with cache.making(f"environment-{key}") as lock:
        holds, is_whole = None, False
        if (made := cache.environment(key)) is not None:
            try:
                holds, is_whole = _undamaged(made, folder, request), True
            except BenchmarkError as error:
                console.print(f"{folder}: {error}; making it anew", markup=False, style="yellow")
        if not is_whole:
            _refuse_what_failed(key, request)
            with cache.unused(f"environment-{key}") as unused:
                if not unused:
                    raise BenchmarkError(f"{folder}: must be made anew and is in use; end what measures there")
                remove(folder)
            try:
                with _remembered(key, record.address, request, lock) as shop:
                    holds = _install(key, record, folder, shop, request)
            except BaseException:
                remove(folder)
                raise
        leases.enter_context(cache.use(f"environment-{key}"))
        cache.touch(key)
    return key, holds


def _install(key: str, record: SourceRecord, folder: Path, shop: Workshop, request: Request) -> Interpreter | None:
    cache, settings = request.cache, request.settings
    paths = cache.checked_wheels(record.wheels)
    if paths is None:
        raise _WheelsAreGone
    console.print(f"installing {' '.join(wheel.requirement for wheel in record.wheels)}", markup=False)
    installed = fill_environment(
        shop,
        request.base,
        folder,
        wheels=paths,
        requirements=settings.requirements,
        without_dependencies=settings.without_dependencies,
        index=settings.index,
        extra_index=settings.extra_index,
    )
    contents = contents_of(folder, (WHOLE, LOG))  # before its code runs for the first time
    try:
        holds, distributions = _verified(folder / "bin" / "python", request)
    except BenchmarkError as error:
        raise BuildFailed(str(error)) from error
    _require_versions(record.wheels, distributions)
    cache.keep_environment(
        EnvironmentRecord(
            key=key,
            address=record.address,
            ended=datetime.now(UTC),
            python=request.target.version,
            wheels=record.wheels,
            distributions=installed,
            contents=contents,
            bytes=size_of(folder),
        ),
        shop.log,
    )
    return holds


def _undamaged(made: EnvironmentRecord, folder: Path, request: Request) -> Interpreter | None:
    """What an environment holds that was whole once. Raises BenchmarkError if it is not as it was."""
    if contents_of(folder, (WHOLE, LOG)) != made.contents:
        raise BenchmarkError(
            "its files are not those that were installed (what models need belongs into `builds.requirements`)"
        )
    holds, distributions = _verified(folder / "bin" / "python", request)
    _require_versions(made.wheels, distributions)
    return holds


def _verified(interpreter: Path, request: Request) -> tuple[Interpreter | None, dict[str, str]]:
    """What an interpreter holds that can do what is asked of it, and its distributions; of a plain one those alone.
    Raises BenchmarkError if it cannot."""
    if request.plain:
        return None, distributions_in(interpreter, request.subject)
    holds = verify_interpreter(interpreter, request.subject, "builds.requirements")
    return holds, holds.distributions


def _require_versions(wheels: Sequence[CachedWheel], distributions: dict[str, str]) -> None:
    for wheel in wheels:
        found = distributions.get(wheel.name)
        try:
            same = found is not None and Version(found) == Version(wheel.version)
        except InvalidVersion:
            same = False
        if not same:
            raise BuildFailed(f"the environment holds {wheel.name} {found}, not that of the wheel {wheel.file}")


def _refuse_what_failed(key: str, request: Request) -> None:
    failure = request.cache.failure(key)
    if failure is None:
        return
    if request.retry:
        request.cache.forget_failure(key)
        return
    log = request.cache.failure_log(key)
    raise BuildFailed(
        f"{failure.what} (remembered from {failure.ended:%Y-%m-%d %H:%M} UTC; --retry tries again; log: {log})",
        log,
        failure.lines,
        remembered=True,
    )


@contextmanager
def _remembered(key: str, address: str, request: Request, lock: int) -> Iterator[Workshop]:
    """A workshop for one attempt. What fails there for a reason of its own is remembered with its log."""
    cache = request.cache
    with cache.workshop(key, lock) as shop:
        try:
            yield shop
        except BuildFailed as error:
            raise _remember(key, address, error, shop, cache) from error
        except CommandFailed as error:
            tail = all_lines(shop.log)
            if error.full or says_full(tail) or cache.is_full():
                raise cache.no_space() from error
            if network := blames_network(tail):
                raise BuildUnavailable(f"{error}: {network}") from error
            raise _remember(key, address, error, shop, cache) from error


def _remember(key: str, address: str, error: Exception, shop: Workshop, cache: BuildCache) -> BuildFailed:
    lines = tuple(last_lines(shop.log))
    what = one_line(without_credentials(str(error)))
    record = FailureRecord(key=key, address=address, ended=datetime.now(UTC), what=what, lines=lines)
    cache.keep_failure(record, shop.log)
    told = f": {' | '.join(lines)}" if isinstance(error, CommandFailed) and lines else ""
    return BuildFailed(f"{what}{told} (log: {cache.failure_log(key)})", cache.failure_log(key), lines)
