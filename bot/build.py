"""The command `build`: that of the measuring part, and also the build that a nightly's configuration means today."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from bot.readiness import require_ready
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.cli import (
    AddressArgument,
    CacheOption,
    IntoOption,
    LimitOption,
    MakerOption,
    PlanOption,
    RetryOption,
    SubjectOption,
    install_pinned,
    make_build,
    pin_of_plan,
    refuse_beside_an_address,
    register_cache,
)
from torchbenchmark.builds.nightly_index import resolve
from torchbenchmark.builds.pinned import PinnedBuild


def register(app: typer.Typer) -> None:
    app.command("build")(build_command)
    register_cache(app)


def build_command(
    address: AddressArgument = None,
    into: IntoOption = None,
    plan: PlanOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML of the nightly: the build that its `build` means today; with an address, how it makes `builds`."
        ),
    ] = None,
    python: MakerOption = None,
    subject: SubjectOption = None,
    retry: RetryOption = False,
    cache: CacheOption = None,
    max_gib: LimitOption = None,
) -> None:
    """Make or install the build to measure. The last line of the output is its interpreter."""
    if address is not None:
        refuse_beside_an_address(plan, into)
        chosen = load_config(config) if config is not None else NightlyConfig()
        opened = partial(BuildCache.open, cache, max_gib)
        make_build(address, chosen.builds, opened, subject or chosen.subject, python, retry=retry)
    elif plan is not None and config is None:
        install_pinned(lambda: pin_of_plan(plan), into, python)
    elif config is not None and plan is None:
        install_pinned(lambda: _pin_of_config(config), into, python)
    else:
        raise BotError("name either the --plan that pins the build or the --config that asks for it, or an address")


def _pin_of_config(path: Path) -> PinnedBuild:
    config = load_config(path)
    require_ready(config)  # as the nightly does, which is to measure it
    if config.build is None:
        raise BotError(f"{path}: has no key build, which says what to install")
    return resolve(config.build)
