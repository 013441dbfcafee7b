"""Runs a measuring command of the user, and takes its number: one a line, of several the median."""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path

from bot.errors import BotError
from torchbenchmark.builds.build_errors import CommandFailed
from torchbenchmark.builds.workshop import Workshop, all_lines
from torchbenchmark.foreign_text import one_line

LARGEST_OUTPUT = 10 * 2**20  # bytes


class CannotMeasure(BotError):
    """A build is there and gives no number."""


def run_script(command: str, folder: Path, scratch: Path, variables: Mapping[str, str], timeout_s: float) -> float:
    """The number that a run of the command in a folder prints. Raises CannotMeasure, which says what was wrong.

    Nothing of it runs on when it is too slow, or when this process ends.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    out, log = scratch / "stdout", scratch / "stderr"
    out.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    script = scratch / "measure.sh"
    script.write_text(f"{command}\n", encoding="utf-8")
    try:
        Workshop(folder, log).run(
            ["/bin/sh", "-c", 'exec >"$1"; . "$2"', "measure", str(out), str(script)],
            "the measuring command failed",
            timeout_s=timeout_s,
            variables=variables,
        )
    except CommandFailed as error:
        told = all_lines(log)[-1:] or all_lines(out)[-1:]
        raise CannotMeasure(f"{error}{': ' + told[0] if told else ''}") from error
    return number_of(_read(out))


def number_of(text: str) -> float:
    """The median of the numbers that a measuring command has printed. Raises CannotMeasure."""
    values = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            value = float(line)
        except ValueError:
            raise CannotMeasure(
                f"the measuring command printed {one_line(line)[:80]!r}, which is no number; it must print one number "
                "a line, and all else to stderr"
            ) from None
        if not math.isfinite(value) or value <= 0:
            raise CannotMeasure(
                f"the measuring command printed {line[:40]}; builds are held against each other by ratios, which need "
                "finite numbers above 0"
            )
        values.append(value)
    if not values:
        raise CannotMeasure("the measuring command printed nothing; it must print one number a line to stdout")
    return statistics.median(values)


def _read(path: Path) -> str:
    with open(path, "rb") as file:
        content = file.read(LARGEST_OUTPUT + 1)
    if len(content) > LARGEST_OUTPUT:
        raise CannotMeasure(f"the measuring command printed over {LARGEST_OUTPUT} bytes; it must print numbers")
    return content.decode(errors="replace")
