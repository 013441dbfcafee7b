"""The command `torchbench baseline`, to which nights of open alerts are known: those stay whole, whatever their age."""

import typer

from baselines import cli as baselines_commands
from bot.triage.accepting import nights_of_alerts


def register(app: typer.Typer) -> None:
    baselines_commands.register(app, nights_of_alerts)
