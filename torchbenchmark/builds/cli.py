"""The command `build`: installs the build of a plan, or the one that a nightly's configuration means today."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict

from torchbenchmark.builds.installation import install
from torchbenchmark.builds.nightly_index import NightlyBuild, resolve
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.shards import read_plan
from torchbenchmark.yaml_files import read_yaml


class _Configuration(BaseModel):
    """The one key that concerns the build of a nightly's YAML; the rest is the nightly's to check."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    build: NightlyBuild | None = None


def register(app: typer.Typer) -> None:
    app.command("build")(build_command)


def build_command(
    into: Annotated[Path, typer.Option(help="The folder of the build: new, empty, or that of an earlier build.")],
    plan: Annotated[Path | None, typer.Option(help="Plan of a run in shards (torchbench plan), which pins it.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML of the nightly: the build that its `build` means today.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option(help="Interpreter that makes the virtual environment (default: this one).")
    ] = None,
) -> None:
    """Install the build to measure into a folder. The last line of the output is its interpreter."""
    from torchbenchmark.cli import end_children_on_termination  # which registers this command

    end_children_on_termination()
    if (plan is None) == (config is None):
        raise BenchmarkError("name either the --plan that pins the build or the --config that asks for it")
    pin = _pin_of_plan(plan) if plan is not None else _pin_of_config(config)
    interpreter = install(pin, into, python)
    print(interpreter)


def _pin_of_plan(path: Path) -> PinnedBuild:
    pin = read_plan(path).build
    if pin is None:
        raise BenchmarkError(f"{path}: pins no build; set `build` in the configuration that the plan is made from")
    return pin


def _pin_of_config(path: Path) -> PinnedBuild:
    build = read_yaml(path, _Configuration).build
    if build is None:
        raise BenchmarkError(f"{path}: has no key build, which says what to install")
    return resolve(build)
