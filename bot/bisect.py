"""The command `bisect`: which commit of a range changed a test. So far the search alone, on ranges that are made up."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from bot.errors import BotError
from torchbenchmark.terminal import console

MOST_REPLICATES = 100_000


def register(app: typer.Typer) -> None:
    app.command("bisect")(bisect)


def bisect(
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Search ranges that are made up, and count how that ends.")
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Only these ranges: 1, 2, 3, 5 (steps in sd), none, two, noise (may be repeated)."),
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, max=MOST_REPLICATES, help="Ranges of each kind.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The first seed; each range takes the next.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Write the tables, as Markdown, to this file as they get done.")
    ] = None,
) -> None:
    """Find the commit of a range that changed a test, through noise and commits that do not build.

    There is --simulate so far: the search, on made-up ranges, with what it found and what it cost.
    """
    if not simulate:
        raise BotError("bisect has --simulate so far; builds and measurements of a real range are to come")
    from bot.bisection.table import GROUPS, markdown_table, simulated_rows  # scipy takes a second

    for name in group or ():
        if name not in GROUPS:
            raise BotError(f"--group {name}: no such ranges; there are {', '.join(GROUPS)}")
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise BotError(f"{out}: --out names a file in a folder that exists")
    parts = [f"{replicates} ranges of each kind, seeds from {seed}\n"]
    for name in dict.fromkeys(group or GROUPS):
        rows = []
        for row in simulated_rows(name, replicates, seed):
            rows.append(row)
            console.print(Text(markdown_table([row]).splitlines()[-1]))
            if out is not None:
                _write(out, "\n".join([*parts, markdown_table(rows)]))
        parts.append(markdown_table(rows))


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BotError(f"{out}: cannot be written: {error.strerror}") from error
