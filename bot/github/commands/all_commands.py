"""The commands that there are: a new one is a file beside this one and a line here."""

from typing import Any

from bot.github.commands import (
    ack,
    alert_help,
    benchmark,
    benchmark_cancel,
    benchmark_help,
    benchmark_profile,
    benchmark_status,
    bisect,
    expected,
    noise,
    snooze,
)
from bot.github.commands.command import Command, Place

ALL_COMMANDS: tuple[Command[Any], ...] = (
    benchmark.COMMAND,
    benchmark_profile.COMMAND,
    benchmark_status.COMMAND,
    benchmark_cancel.COMMAND,
    benchmark_help.COMMAND,
    ack.COMMAND,
    expected.COMMAND,
    noise.COMMAND,
    snooze.COMMAND,
    bisect.COMMAND,
    alert_help.COMMAND,
)


def commands_at(place: Place) -> tuple[Command[Any], ...]:
    """Those that can be said below a pull request, or below the issue of an alert."""
    return tuple(command for command in ALL_COMMANDS if command.place == place)


def names_at(place: Place) -> frozenset[str]:
    """What stands after the slash: `/benchmark status` is a word more."""
    return frozenset(command.name.split()[0] for command in commands_at(place))


def find_command(place: Place, name: str, words: tuple[str, ...]) -> tuple[Command[Any], tuple[str, ...]]:
    """The command that a name and the words after it mean, and its own words."""
    known = {command.name: command for command in commands_at(place)}
    if words and (longer := known.get(f"{name} {words[0]}")) is not None:
        return longer, words[1:]
    return known[name], words
