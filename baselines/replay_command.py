"""`torchbench replay`: any history, night by night, through the screen that the nightly uses."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from baselines.errors import BaselineError
from baselines.screening import KnobName
from torchbenchmark.experiment import matches_glob
from torchbenchmark.terminal import console

if TYPE_CHECKING:  # numpy, which all of it computes with, takes a quarter of the start of every other command
    from baselines.histories import History
    from baselines.replay import Replayed

NOTES_SHOWN = 20
NAMES_TOLD = 5
IN_FULL = 3  # series with reports, up to which all are shown in full without being named


def register(app: typer.Typer) -> None:
    app.command("replay")(replay)


def replay(
    points: Annotated[
        Path | None, typer.Argument(help="The history: a file, or the folder of formats that keep several.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the reports to this CSV file; with --fleet, what is filed, as JSON.")
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option(help="CSV with the columns series, unit, direction (lower, higher or unknown: what is better)."),
    ] = None,
    format_name: Annotated[
        str, typer.Option("--format", help="csv, sandmark, github-action-benchmark or asv.")
    ] = "csv",
    knob: Annotated[KnobName, typer.Option(help="How much evidence a report needs.")] = "default",
    hindsight: Annotated[
        bool,
        typer.Option("--hindsight", help="Cut the whole history into levels at once, each night knowing all others."),
    ] = False,
    value_column: Annotated[str | None, typer.Option(help="Take another column than `value`.")] = None,
    series_name: Annotated[
        list[str] | None,
        typer.Option(help="Only series that match this glob (a bracket is a bracket), shown in full; may be repeated."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw each series into this folder (needs matplotlib, the extra `pictures`).")
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:CLASS", help="Instead of a history a simulated fleet, through confirming and filing too."
        ),
    ] = None,
    scenario: Annotated[
        str | None, typer.Option(metavar="FILE:NAME", help="With --fleet: the YAML file and the scenario in it.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --fleet: the seed of the fleet and of the coins.")] = None,
) -> None:
    """What the screen would have reported in each night of a history, had it known that night and those before it.

    With --fleet: what a simulated fleet of runners would have had filed, night by night, and what it would have cost.
    """
    if fleet is not None or scenario is not None or seed is not None:
        beside = {
            "POINTS": points,
            "--series": series,
            "--series-name": series_name,
            "--picture": picture,
            "--hindsight": hindsight,
        }
        _replay_fleet(fleet, scenario, 1 if seed is None else seed, out, [name for name, one in beside.items() if one])
        return
    if points is None:
        raise BaselineError("name the history to replay, or a simulated fleet with --fleet and --scenario")
    from baselines.histories import read_histories
    from baselines.history_picture import draw_pictures
    from baselines.replay import replay_histories, write_detections
    from baselines.replay_view import counted, shortened, summary

    _check_places(points, series, out, picture)
    reading = read_histories(points, format_name, series=series, value_column=value_column)
    for line in shortened(reading.notes, NOTES_SHOWN):
        console.print(Text(f"note: {line}"))
    chosen = _choose(reading.histories, series_name, points)
    replayed = replay_histories(chosen, knob, hindsight=hindsight)
    if out is not None:
        write_detections(out, replayed)
    _show(replayed, in_full=bool(series_name))
    console.print(Text(summary(replayed)))
    if out is not None:
        console.print(Text(f"reports written to {out}"))
    if picture is not None:
        console.print(Text(f"{counted(draw_pictures(replayed, picture), 'picture')} drawn into {picture}"))


def _replay_fleet(fleet: str | None, scenario: str | None, seed: int, out: Path | None, beside: list[str]) -> None:
    from baselines.confirming.rules import Rules
    from baselines.fleet_replay import open_fleet, replay_fleet, told

    if fleet is None or scenario is None or out is None:
        raise BaselineError("a fleet needs --fleet MODULE:CLASS, --scenario FILE:NAME and --out FILE")
    if beside:
        raise BaselineError(f"{', '.join(beside)}: of a history; a fleet brings its own nights")
    if out.is_dir() or not out.parent.is_dir():
        raise BaselineError(f"{out}: --out names a file in a folder that exists")
    if out.exists() and (path := Path(scenario.rpartition(":")[0])).exists() and out.samefile(path):
        raise BaselineError(f"{out}: --out would overwrite what is read; name another file")
    found = replay_fleet(open_fleet(fleet, scenario, seed), seed, Rules())
    out.write_text(json.dumps(found) + "\n", encoding="utf-8")
    console.print(Text(told(found)))
    console.print(Text(f"what is filed written to {out}"))


def _check_places(points: Path, series: Path | None, out: Path | None, picture: Path | None) -> None:
    """Before the work, not after it."""
    from torchbenchmark.pictures import require_matplotlib

    if out is not None:
        if out.is_dir():
            raise BaselineError(f"{out}: is a folder; --out names the file for the reports")
        if not out.parent.is_dir():
            raise BaselineError(f"{out.parent}: no such folder; make it, or name another file for --out")
        if any(
            out.exists() and given is not None and given.exists() and out.samefile(given) for given in (points, series)
        ):
            raise BaselineError(f"{out}: --out would overwrite what is read; name another file")
    if picture is not None:
        require_matplotlib(BaselineError)
        if picture.exists() and not picture.is_dir():
            raise BaselineError(f"{picture}: is no folder; --picture names a folder for one file a series")


def _choose(histories: "tuple[History, ...]", patterns: list[str] | None, points: Path) -> "list[History]":
    if not histories:
        raise BaselineError(f"{points}: no series has a value that can be compared; values have to be above zero")
    if not patterns:
        return list(histories)
    names = list(dict.fromkeys(one.series for one in histories))
    for pattern in patterns:
        if not any(matches_glob(name, pattern) for name in names):
            some = f"{', '.join(names[:NAMES_TOLD])}{' ...' if len(names) > NAMES_TOLD else ''}"
            raise BaselineError(f"--series-name {pattern}: no series of {points} matches; there are {some}")
    return [one for one in histories if any(matches_glob(one.series, pattern) for pattern in patterns)]


def _show(replayed: "list[Replayed]", *, in_full: bool) -> None:
    from baselines.replay_view import details, overview

    reported = [one for one in replayed if one.detections]
    if in_full or len(reported) <= IN_FULL:
        for one in replayed if in_full else reported:
            console.print(details(one, console.width))
            console.print()
    elif reported:
        console.print(overview(replayed))
        console.print(Text("--series-name GLOB shows a series in full"))
