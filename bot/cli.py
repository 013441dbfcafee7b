"""The command `torchbench`: joins the commands that each package owns. Only what was asked for is imported, for that is
most of what a short command takes."""

import sys
from importlib import import_module

import typer

from torchbenchmark.terminal import EXIT_INTERRUPTED, error_console, new_app, run_app

# Where `register` adds them, in the order of the help.
OWNERS: dict[str, tuple[str, ...]] = {
    "torchbenchmark.cli": ("install", "run", "list", "ab", "compare", "profile", "doctor", "check-models"),
    "bot.build": ("build", "builds"),
    "bot.canary": ("canary",),
    "score.cli": ("score",),
    "score.repeatability_command": ("repeatability",),
    "baselines.replay_command": ("replay",),
    "regression_detector": ("detect",),
    "bot.nightly": ("nightly",),
    "bot.sharded": ("plan", "conclude"),
    "bot.confirm": ("confirm",),
    "bot.filing": ("file",),
    "bot.alerts_command": ("alerts",),
    "bot.watchdog": ("watchdog",),
    "bot.workflow": ("workflow",),
    "bot.bisect": ("bisect",),
    "bot.installing.init": ("init", "check"),
    "bot.event_command": ("bot",),
    "bot.baseline_command": ("baseline",),
}


def main() -> None:
    try:
        app = joined(owners_of(sys.argv[1:]))
    except KeyboardInterrupt:  # most of what a short command takes is this
        error_console.print("interrupted", style="red")
        sys.exit(EXIT_INTERRUPTED)
    run_app(app)


def owners_of(arguments: list[str]) -> list[str]:
    """The module that has the command, or all of them where the first argument is none of their commands."""
    asked_for = next((argument for argument in arguments if argument != "--debug"), "")
    return [module for module, commands in OWNERS.items() if asked_for in commands] or list(OWNERS)


def joined(modules: list[str]) -> typer.Typer:
    """A command line with the commands of these modules."""
    app = new_app("Measure, score, compare and report the performance of PyTorch builds.")
    app.callback()(_group)  # without which typer would leave out the name of a command that is alone
    for module in modules:
        import_module(module).register(app)
    return app


def _group() -> None:
    return None
