"""The command `build`: installs the build of a plan, or the one that a nightly's configuration means today."""

from pathlib import Path
from typing import Annotated

import typer

from bot.config import load_config
from bot.errors import BotError
from bot.readiness import require_ready
from torchbenchmark.builds.cli import IntoOption, MakerOption, install_pinned, pin_of_plan
from torchbenchmark.builds.nightly_index import resolve
from torchbenchmark.builds.pinned import PinnedBuild


def register(app: typer.Typer) -> None:
    app.command("build")(build_command)


def build_command(
    into: IntoOption,
    plan: Annotated[Path | None, typer.Option(help="Plan of a run in shards (torchbench plan), which pins it.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML of the nightly: the build that its `build` means today.")
    ] = None,
    python: MakerOption = None,
) -> None:
    """Install the build to measure into a folder. The last line of the output is its interpreter."""
    if plan is not None and config is None:
        install_pinned(pin_of_plan(plan), into, python)
    elif config is not None and plan is None:
        install_pinned(_pin_of_config(config), into, python)
    else:
        raise BotError("name either the --plan that pins the build or the --config that asks for it")


def _pin_of_config(path: Path) -> PinnedBuild:
    config = load_config(path)
    require_ready(config)  # as the nightly does, which is to measure it
    if config.build is None:
        raise BotError(f"{path}: has no key build, which says what to install")
    return resolve(config.build)
