"""Runs a measuring command of the user, and takes its number: one a line, of several the median. Where it is compared
exactly, all its numbers as they are, or whether it fails."""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path

from bot.errors import BotError
from torchbenchmark.builds.build_errors import CommandFailed
from torchbenchmark.builds.workshop import Workshop, all_lines, says_full
from torchbenchmark.foreign_text import one_line

LARGEST_OUTPUT = 10 * 2**20  # bytes
MOST_COUNTS = 100  # that a run may print, where they are compared exactly
SKIP = 125  # exit status of a command that cannot say whether a commit is good, as of `git bisect run`
_OUT, _ERR = "stdout", "stderr"


class CannotMeasure(BotError):
    """A build is there and gives no number."""


class BaseCannotMeasure(BotError):
    """What a commit is measured against gives no number: the good end, which ends a search."""


def run_script(command: str, folder: Path, scratch: Path, variables: Mapping[str, str], timeout_s: float) -> float:
    """The number that a run of the command in a folder prints. Raises CannotMeasure, which says what was wrong."""
    return number_of(run_output(command, folder, scratch, variables, timeout_s))


def run_output(command: str, folder: Path, scratch: Path, variables: Mapping[str, str], timeout_s: float) -> str:
    """What a run of the command prints to stdout. Raises CannotMeasure where it fails."""
    try:
        return _read(_run(command, folder, scratch, variables, timeout_s))
    except CommandFailed as error:
        raise CannotMeasure(f"{error}{_last_line(scratch)}") from error


def exit_of(command: str, folder: Path, scratch: Path, variables: Mapping[str, str], timeout_s: float) -> str:
    """How a run of the command fails; empty if it does not. Raises CannotMeasure where it says that it cannot tell, and
    BotError for a full disk, which says nothing of the commit."""
    try:
        _run(command, folder, scratch, variables, timeout_s)
    except CommandFailed as error:
        if error.full or says_full(all_lines(scratch / _ERR)):
            raise BotError(f"{folder}: the disk is full, so the command failed; make room") from error
        if error.code == SKIP:
            raise CannotMeasure(f"the command exits with {SKIP}, which skips a commit{_last_line(scratch)}") from error
        return f"{error.how}{_last_line(scratch)}"
    return ""


def _run(command: str, folder: Path, scratch: Path, variables: Mapping[str, str], timeout_s: float) -> Path:
    """The file of its output. Nothing of it runs on when it is too slow, or when this process ends."""
    scratch.mkdir(parents=True, exist_ok=True)
    out, log = scratch / _OUT, scratch / _ERR
    out.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    script = scratch / "measure.sh"
    script.write_text(f"{command}\n", encoding="utf-8")
    Workshop(folder, log).run(
        ["/bin/sh", "-c", 'exec >"$1"; . "$2"', "measure", str(out), str(script)],
        "the measuring command failed",
        timeout_s=timeout_s,
        variables=variables,
    )
    return out


def _last_line(scratch: Path) -> str:
    told = all_lines(scratch / _ERR)[-1:] or all_lines(scratch / _OUT)[-1:]
    return f": {told[0]}" if told else ""


def number_of(text: str) -> float:
    """The median of the numbers that a measuring command has printed. Raises CannotMeasure."""
    values = []
    for line in _lines(text):
        value = _number(line)
        if not math.isfinite(value) or value <= 0:
            raise CannotMeasure(
                f"the measuring command printed {line[:40]}; builds are held against each other by ratios, which need "
                "finite numbers above 0"
            )
        values.append(value)
    return statistics.median(values)


def exact_numbers(text: str) -> str:
    """All numbers that were printed, each in one way of writing. Raises CannotMeasure."""
    lines = _lines(text)
    if len(lines) > MOST_COUNTS:
        raise CannotMeasure(f"the measuring command printed {len(lines)} numbers; at most {MOST_COUNTS} are compared")
    return ", ".join(map(_exactly, lines))


def _exactly(line: str) -> str:
    value = _number(line)
    if not math.isfinite(value):
        raise CannotMeasure(f"the measuring command printed {line[:40]}, which is no count")
    try:
        return str(int(line))
    except ValueError:
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _lines(text: str) -> list[str]:
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if not lines:
        raise CannotMeasure("the measuring command printed nothing; it must print one number a line to stdout")
    return lines


def _number(line: str) -> float:
    try:
        return float(line)
    except ValueError:
        raise CannotMeasure(
            f"the measuring command printed {one_line(line)[:80]!r}, which is no number; it must print one number "
            "a line, and all else to stderr"
        ) from None


def _read(path: Path) -> str:
    with open(path, "rb") as file:
        content = file.read(LARGEST_OUTPUT + 1)
    if len(content) > LARGEST_OUTPUT:
        raise CannotMeasure(f"the measuring command printed over {LARGEST_OUTPUT} bytes; it must print numbers")
    return content.decode(errors="replace")
