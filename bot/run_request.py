"""What a configuration asks to be measured: the night, and what is measured again to confirm what it found."""

from pathlib import Path

from bot.config import NightlyConfig
from torchbenchmark.environment import default_interpreter
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import load_suite


def run_request(config: NightlyConfig, python: Path | None = None) -> RunRequest:
    """The suite of the configuration on the build of `python`, or of the interpreter that runs the bot."""
    return RunRequest(
        suite=load_suite(config.suite),
        device=config.device,
        rounds=config.rounds,
        processes=config.processes,
        python=default_interpreter() if python is None else python,
        subject=config.subject,
        threads=config.threads,
        budget_s=config.budget_s,
        timeout_s=config.timeout_s,
        memory_limit_mib=config.memory_limit_mib,
        model_folders=config.models,
    )
