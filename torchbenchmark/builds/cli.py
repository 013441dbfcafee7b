"""The command `build` of the measuring part alone: installs the build that a plan pins."""

from pathlib import Path
from typing import Annotated

import typer

from torchbenchmark.builds.installation import install
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.shards import read_plan

IntoOption = Annotated[Path, typer.Option(help="The folder of the build: new, empty, or that of an earlier build.")]
MakerOption = Annotated[
    Path | None, typer.Option(help="Interpreter that makes the virtual environment (default: this one).")
]


def register(app: typer.Typer) -> None:
    app.command("build")(build_command)


def build_command(
    into: IntoOption,
    plan: Annotated[Path, typer.Option(help="Plan of a run in shards (torchbench plan), which pins it.")],
    python: MakerOption = None,
) -> None:
    """Install the build to measure into a folder. The last line of the output is its interpreter."""
    install_pinned(pin_of_plan(plan), into, python)


def install_pinned(pin: PinnedBuild, into: Path, python: Path | None) -> None:
    """Install the build and print its interpreter."""
    from torchbenchmark.cli import end_children_on_termination  # which registers this command

    end_children_on_termination()
    print(install(pin, into, python))


def pin_of_plan(path: Path) -> PinnedBuild:
    pin = read_plan(path).build
    if pin is None:
        raise BenchmarkError(f"{path}: pins no build; set `build` in the configuration that the plan is made from")
    return pin
