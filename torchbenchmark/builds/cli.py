"""The command `build`: makes the build that an address names, or installs the one that a plan pins; and `builds`: what
the cache holds."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.cache import FOLDER_VARIABLE, LIMIT_VARIABLE, BuildCache
from torchbenchmark.builds.eviction import Item, items, remove_item, shrink
from torchbenchmark.builds.installation import install
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.builds.provide import provide
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.shards import read_plan
from torchbenchmark.terminal import console, new_app, print_table

_GIB = 2**30
_SHORT_KEY = 12  # digits of a key that a table shows; as many or more name an entry

CacheOption = Annotated[
    Path | None,
    typer.Option(help=f"The cache of builds (default: ${FOLDER_VARIABLE}, or else ~/.cache/torchbench/builds)."),
]
LimitOption = Annotated[
    float | None, typer.Option(help=f"Size to keep the cache under, in GiB (default: ${LIMIT_VARIABLE}, or else 100).")
]
AddressArgument = Annotated[
    str | None, typer.Argument(help="The build by its address: release:torch==2.12.0, git:/src/pytorch@main, a path.")
]
IntoOption = Annotated[
    Path | None, typer.Option(help="Of a pinned build: its folder, new, empty, or of an earlier build.")
]
PlanOption = Annotated[
    Path | None, typer.Option(help="Plan of a run in shards (torchbench plan), which pins the build.")
]
MakerOption = Annotated[
    Path | None, typer.Option(help="Interpreter that makes the virtual environment (default: this one).")
]
SubjectOption = Annotated[
    str | None, typer.Option(help="With an address: the package whose speed is in question (default: torch).")
]
RetryOption = Annotated[bool, typer.Option("--retry", help="With an address: try again what failed before.")]


def register(app: typer.Typer) -> None:
    app.command("build")(build_command)
    register_cache(app)


def register_cache(app: typer.Typer) -> None:
    """The commands of the cache alone: the bot has a `build` of its own, which knows the nightly's configuration."""
    builds = new_app("The cache of builds: what it holds, and what failed.")
    builds.command("list")(list_command)
    builds.command("gc")(gc_command)
    builds.command("forget")(forget_command)
    app.add_typer(builds, name="builds")


def build_command(
    address: AddressArgument = None,
    into: IntoOption = None,
    plan: PlanOption = None,
    python: MakerOption = None,
    subject: SubjectOption = None,
    retry: RetryOption = False,
    cache: CacheOption = None,
    max_gib: LimitOption = None,
) -> None:
    """Make or install the build to measure. The last line of the output is its interpreter."""
    if address is not None:
        refuse_beside_an_address(plan, into)
        opened = partial(BuildCache.open, cache, max_gib)
        make_build(address, BuildSettings(), opened, subject or "torch", python, retry=retry)
    elif plan is None:
        raise BenchmarkError("name the build by an address, or the --plan that pins it")
    else:
        install_pinned(lambda: pin_of_plan(plan), into, python)


def make_build(
    address: str,
    settings: BuildSettings,
    cache: Callable[[], BuildCache],
    subject: str,
    python: Path | None,
    *,
    retry: bool,
) -> None:
    """Make the build of an address in the cache, and print its interpreter. `cache` opens it: that makes its folder."""
    from torchbenchmark.cli import end_children_on_termination  # which registers this command

    end_children_on_termination()
    parsed = parse_address(address, subject)
    with provide(parsed, cache(), settings, subject=subject, python=python, retry=retry) as build:
        console.print(f"build {build.address}", markup=False)
        print(build.interpreter)


def install_pinned(pin: Callable[[], PinnedBuild], into: Path | None, python: Path | None) -> None:
    """Install the build and print its interpreter. `pin` looks it up, once the call is known to be right."""
    from torchbenchmark.cli import end_children_on_termination  # which registers this command

    if into is None:
        raise BenchmarkError("name the folder to install the build --into")
    end_children_on_termination()
    print(install(pin(), into, python))


def refuse_beside_an_address(plan: Path | None, into: Path | None) -> None:
    if plan is not None:
        raise BenchmarkError("--plan: pins a build, and so does the address; name one of them")
    if into is not None:
        raise BenchmarkError("--into: a build that an address names is made in the cache; name that with --cache")


def pin_of_plan(path: Path) -> PinnedBuild:
    pin = read_plan(path).build
    if pin is None:
        raise BenchmarkError(f"{path}: pins no build; set `build` in the configuration that the plan is made from")
    return pin


def list_command(cache: CacheOption = None) -> None:
    """List what the cache holds, the longest unused first, and what failed."""
    opened = BuildCache.open(cache)
    there = items(opened)
    names = _names(opened)
    table = Table("key", "kind", "GiB", "last used (UTC)", "in use", "what")
    for item in there:
        with opened.alone(item.lock) as alone:
            in_use = "" if alone else "yes"
        table.add_row(
            item.key[:_SHORT_KEY],
            item.kind,
            f"{item.bytes / _GIB:.2f}",
            f"{item.used:%Y-%m-%d %H:%M}",
            in_use,
            names.get(item.key, ""),
        )
    print_table(table)
    total = sum(item.bytes for item in there) / _GIB
    console.print(f"{total:.2f} GiB of {opened.max_bytes / _GIB:g} in {opened.folder}", markup=False)
    failures = opened.failures()
    if failures:
        console.print("failed, and not tried again until --retry or `torchbench builds forget KEY`:", markup=False)
    for one in failures:  # no table: a reason is longer than a line
        console.print(f"{one.key[:_SHORT_KEY]}  {one.ended:%Y-%m-%d %H:%M} UTC  {one.address}", markup=False)
        for line in (one.what, *one.lines, f"log: {opened.failure_log(one.key)}"):
            console.print(f"  {line}", markup=False)


def _names(cache: BuildCache) -> dict[str, str]:
    """What to call an item: the build that it is or comes from."""
    names = {record.key: record.address for record in cache.environments()}
    for source in cache.sources():
        names |= {wheel.sha256: f"{wheel.file} of {source.address}" for wheel in source.wheels}
    return names


def gc_command(cache: CacheOption = None, max_gib: LimitOption = None) -> None:
    """Remove what was used longest ago until the cache is under its limit. What is in use stays."""
    opened = BuildCache.open(cache, max_gib)
    removed = shrink(opened)
    total = sum(item.bytes for item in items(opened))
    freed = sum(item.bytes for item in removed) / _GIB
    console.print(f"removed {len(removed)} entries, {freed:.2f} GiB; {total / _GIB:.2f} GiB are left")
    if total > opened.max_bytes:
        console.print(f"the rest is in use, and more than {opened.max_bytes / _GIB:g} GiB", style="yellow")


def forget_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="Keys as `builds list` shows them, or addresses.")
    ] = None,
    failures: Annotated[bool, typer.Option("--failures", help="Forget all failures.")] = False,
    cache: CacheOption = None,
) -> None:
    """Forget failures, so that they are tried again, and remove entries, so that they are made anew."""
    opened = BuildCache.open(cache)
    if bool(names) == failures:
        raise BenchmarkError("name what to forget, or --failures for all that failed")
    if failures:
        forgotten = [opened.forget_failure(record.key) for record in opened.failures()]
        console.print(f"forgot {len(forgotten)} failures")
        return
    there = items(opened)
    for name in names or []:
        _forget(opened, there, name)


def _forget(cache: BuildCache, there: list[Item], name: str) -> None:
    def is_meant(key: str, address: str = "") -> bool:
        return name == address or (len(name) >= _SHORT_KEY and key.startswith(name))

    failed = [record.key for record in cache.failures() if is_meant(record.key, record.address)]
    known = [record for record in cache.sources() if is_meant(record.key, record.address)]
    keys = {record.key for record in cache.environments() if is_meant(record.key, record.address)}
    keys |= {wheel.sha256 for record in known for wheel in record.wheels}
    meant = [item for item in there if item.key in keys or is_meant(item.key)]
    if not (failed or known or meant):
        raise BenchmarkError(f"{cache.folder}: holds nothing named {name[:100]!r}; `torchbench builds list` shows what")
    for key in failed:
        cache.forget_failure(key)
    for record in known:
        cache.forget_source(record.key)
    in_use = [item.key[:_SHORT_KEY] for item in meant if not remove_item(cache, item)]
    if in_use:
        raise BenchmarkError(f"{cache.folder}: {', '.join(in_use)} is in use and stays; end what measures there")
    console.print(f"forgot {name}: {len(failed)} failures, {len(meant)} entries", markup=False)
