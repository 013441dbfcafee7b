"""`torchbench repeatability`: how far repeated runs of one build lie apart."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from score.errors import ScoreError
from score.repeatability import FEWEST_PROCESSES, LIMIT, Repeated, repeated
from torchbenchmark.channels import CHANNELS
from torchbenchmark.quantity import counted
from torchbenchmark.records import read_run
from torchbenchmark.terminal import console, print_table

USUAL = ("latency", "gpu_time")


def register(app: typer.Typer) -> None:
    app.command("repeatability")(repeatability)


def repeatability(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Records of runs of one build on one class.")],
    channel: Annotated[
        list[str] | None,
        typer.Option("--channel", help=f"Of these channels (default: {', '.join(USUAL)}, as far as measured)."),
    ] = None,
    limit: Annotated[float, typer.Option(help="Tests that deviate by more, as a share, are listed by name.")] = LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Largest deviation of each test over repeated RUNs: the highest mean of a process over the lowest, less 1."""
    for name in channel or ():
        if name not in CHANNELS:
            raise ScoreError(f"--channel {name!r}: there is no such channel; use {', '.join(CHANNELS)}")
    if not limit >= 0:
        raise ScoreError(f"--limit {limit:g}: a share of at least 0, such as 0.07 for 7 %")
    found = repeated(runs, [read_run(path) for path in runs], dict.fromkeys(channel or USUAL))
    if not found:
        raise ScoreError(
            f"no test has {', '.join(channel or USUAL)} of {FEWEST_PROCESSES} processes or more that ended ok; "
            f"measure with --rounds {FEWEST_PROCESSES}, "
            "or give more runs of the same build"
        )
    if as_json:
        typer.echo(json.dumps({"limit": limit, "tests": [_as_json(one) for one in found]}, indent=2))
        return
    for name in dict.fromkeys(one.channel for one in found):
        _print([one for one in found if one.channel == name], name, limit)


def _as_json(one: Repeated) -> dict[str, object]:
    unit = CHANNELS[one.channel].unit
    # JSON knows no infinity.
    deviation = one.deviation if one.deviation != float("inf") else None
    return {"test": one.test, "channel": one.channel, "unit": unit, "deviation": deviation, "means": list(one.means)}


def _print(found: Sequence[Repeated], channel: str, limit: float) -> None:
    table = Table(box=None, title=f"{channel}: largest deviation of a process from another", title_justify="left")
    table.add_column("test", no_wrap=True)
    for heading in ("deviation", "processes", f"lowest {CHANNELS[channel].unit}", "highest"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        low, high = min(one.means), max(one.means)
        table.add_row(Text(one.test), f"{one.deviation:.2%}", str(len(one.means)), f"{low:.6g}", f"{high:.6g}")
    print_table(table)
    above = [one.test for one in found if one.deviation > limit]
    told = f"{counted(len(above), 'test')} of {len(found)} above {limit:.0%}"
    console.print(f"{channel}: {told}{': ' if above else ''}{', '.join(above)}", markup=False)
