"""What a step tells GitHub Actions: outputs, annotations and the job's summary; and text of others, kept from telling.

A line of a step's output that begins with `::` is a command to the runner, whoever wrote it.
"""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from bot.errors import BotError
from torchbenchmark.errors import SentinelError
from torchbenchmark.foreign_text import one_line, printable

LONGEST_ANNOTATION = 4000  # characters; GitHub shows 4096 bytes of one
LONGEST_SUMMARY = 200_000  # characters of Markdown; GitHub takes 1 MiB from a step and drops all that is larger


@contextmanager
def foreign_output() -> Iterator[None]:
    """While what is printed may hold text of others, the runner takes no command from it."""
    token = secrets.token_hex(16)
    _tell(f"::stop-commands::{token}")
    try:
        yield
    finally:
        _tell(f"::{token}::")


@contextmanager
def step(name: str) -> Iterator[None]:
    """What others wrote is kept from commanding the runner; an error is an annotation too."""
    try:
        with foreign_output():
            yield
    except SentinelError as error:
        annotate("error", f"{name} failed", str(error))
        raise


def annotate(level: Literal["notice", "warning", "error"], title: str, text: str) -> None:
    """An annotation of the job, shown on the page of the run."""
    _tell(f"::{level} title={_property(title)}::{_data(printable(text)[:LONGEST_ANNOTATION])}")


def set_output(name: str, value: str) -> None:
    """An output of the step, for the steps and jobs after it."""
    if "\n" in value or "\r" in value:
        raise BotError(f"output {name} has more than one line")
    _append("GITHUB_OUTPUT", f"{name}={value}\n")


def add_summary(markdown: str) -> None:
    """Add to the page of the run."""
    if len(markdown) > LONGEST_SUMMARY:
        markdown = markdown[:LONGEST_SUMMARY].rpartition("\n")[0] + "\n\n…cut here.\n"
    _append("GITHUB_STEP_SUMMARY", markdown)


def forget_command_files() -> None:
    """Take from this process, and so from its children, the files by which a step changes the steps after it."""
    for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"):
        os.environ.pop(name, None)


def _append(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if not path:
        raise BotError(f"{variable} is not set: `torchbench workflow` is called by the jobs in .github/workflows")
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text)


def _tell(command: str) -> None:
    # Both streams are one log, in the order in which they are written.
    sys.stderr.flush()
    print(command, flush=True)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")
