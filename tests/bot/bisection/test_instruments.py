"""What measures the commits of a bisection."""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from bot.bisection import instruments
from bot.bisection.document import Visit
from bot.confirming.bench import TerminalRounds
from torchbenchmark import environment
from torchbenchmark.builds.provide import ProvidedBuild
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import load_suite


def test_a_visit_asks_no_build_again_what_it_said_when_it_was_verified(tmp_path, monkeypatch):
    """Each answer takes an import of torch, and a bisection makes dozens of visits."""
    holds = environment.inspect_interpreter(Path(sys.executable))
    monkeypatch.setattr(
        instruments, "provide", lambda address, *_, **__: ProvidedBuild(address, Path(sys.executable), holds)
    )
    monkeypatch.setattr(environment, "ask_interpreter", lambda *_: pytest.fail("a build was asked again"))
    given = []

    def measure_pairs(_request, _header, interpreters, *_, **__):
        given.append(interpreters)
        raise InterruptedError

    monkeypatch.setattr(instruments, "measure_pairs", measure_pairs)
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    request = RunRequest(suite=load_suite("smoke"), device="cpu")
    with ExitStack() as leases:
        instrument = instruments.TestsInstrument(
            tmp_path, request, BuildSettings(), "cpu_time", tmp_path, TerminalRounds(), leases
        )
        with pytest.raises(InterruptedError):
            instrument.measure("a" * 40, Visit(number=0, commit="b" * 40, n=3), lambda _: None)

    assert given == [{"base": holds, "head": holds}]
