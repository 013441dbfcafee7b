"""Bisecting by tests of the suite: the instrument of this machine, and what makes two bisections the same."""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bot.bisection.document import Asked
from bot.bisection.exact_instruments import ExactTests
from bot.bisection.instruments import Instrument, TestsInstrument
from bot.bisection.provided import Addresses, Provided
from bot.confirming.bench import TerminalRounds
from bot.errors import BotError
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.cli import TerminalReporter
from torchbenchmark.environment import cpu_class, default_threads
from torchbenchmark.grid import GridOptions, choose, kinds_and_globs
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import Registry, load_suite

PAIRS = "pairs"


def tests_instrument(
    asked: Asked,
    addresses: Addresses,
    folder: Path,
    settings: BuildSettings,
    models: tuple[Path, ...],
    measure_s: float,
    leases: ExitStack,
    wanted_class: str | None = None,
) -> Instrument:
    """Pairs of `torchbench ab` on builds of the commits or, of what is compared exactly, runs of each."""
    pairs = pairs_instrument(asked, addresses, folder, settings, models, measure_s, leases, wanted_class)
    return ExactTests(pairs, asked, TerminalReporter) if asked.exact else pairs


def pairs_instrument(
    asked: Asked,
    addresses: Addresses,
    folder: Path,
    settings: BuildSettings,
    models: tuple[Path, ...],
    measure_s: float,
    leases: ExitStack,
    wanted_class: str | None = None,
) -> TestsInstrument:
    """Raises at once for a test that is not there, and for a machine that is not of the wanted class: hours of building
    must not come before that. Which GPU there is only a build can tell."""
    if wanted_class is not None and asked.device == "cpu":
        require_class(wanted_class, cpu_class(asked.threads or default_threads()))
    kinds, globs = kinds_and_globs(asked.tests)
    request = RunRequest(
        suite=load_suite(asked.suite),
        device=asked.device,
        selection=globs,
        options=GridOptions(tests=kinds),
        subject=asked.subject,
        threads=asked.threads,
        budget_s=asked.budget_s,
        timeout_s=measure_s,
        model_folders=models,
    )
    choose(Registry(models), request.suite, request.device, request.selection, request.options)
    return TestsInstrument(
        Provided(addresses, settings, asked.subject, leases),
        request,
        asked.channel,
        folder / PAIRS,
        TerminalRounds(),
        on_class=None if wanted_class is None else partial(require_class, wanted_class),
    )


def digest(settings: BuildSettings, models: Sequence[Path]) -> str:
    """How builds are made, and from which folders models come."""
    text = settings.model_dump_json() + "".join(f"/{folder.resolve().name}" for folder in models)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def with_command(settings: BuildSettings, command: str | None, timeout_s: float) -> BuildSettings:
    """The settings with another build command, if one is named."""
    if command is None:
        return settings
    git = settings.git.model_copy(update={"command": command, "timeout_s": timeout_s})
    return settings.model_copy(update={"git": git})


def require_class(wanted: str, found: str) -> None:
    """Raises BotError if this machine is not of the class in which a change was found."""
    if found != wanted:
        raise BotError(
            f"this machine is of class {found}, and the alert of class {wanted}: bisect it on a machine like those "
            "that have measured it"
        )
