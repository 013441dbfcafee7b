"""The command `torchbench`: joins the commands that each package owns."""

import regression_detector
from baselines import cli as baselines_commands
from baselines import replay_command
from bot import (
    alerts_command,
    bisect,
    build,
    canary,
    confirm,
    event_command,
    filing,
    nightly,
    sharded,
    watchdog,
    workflow,
)
from bot.installing import init
from bot.triage.accepting import nights_of_alerts
from score import cli as score_commands
from torchbenchmark import cli as suite_commands
from torchbenchmark.terminal import new_app, run_app


def main() -> None:
    app = new_app("Measure, score, compare and report the performance of PyTorch builds.")
    for commands in (
        suite_commands,
        build,
        canary,
        score_commands,
        replay_command,
        regression_detector,
        nightly,
        sharded,
        confirm,
        filing,
        alerts_command,
        watchdog,
        workflow,
        bisect,
        init,
        event_command,
    ):
        commands.register(app)
    baselines_commands.register(app, nights_of_alerts)
    run_app(app)
