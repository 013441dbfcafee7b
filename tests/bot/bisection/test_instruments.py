"""What measures the commits of a bisection."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.bisection import instruments, provided
from bot.bisection.document import Visit
from bot.confirming.bench import TerminalRounds
from torchbenchmark import environment
from torchbenchmark.builds.provide import ProvidedBuild
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import load_suite

GOOD, CULPRIT = "a" * 40, "b" * 40


@dataclass
class Commits:
    """Of a repository, as addresses of builds."""

    folder: Path
    noun: str = "commit"
    good: str = GOOD

    def address(self, name: str) -> str:
        return f"git:{self.folder}@{name}"

    def prepare(self, name: str) -> str:
        return ""


@pytest.fixture
def holds() -> environment.Interpreter:
    return environment.inspect_interpreter(Path(sys.executable))


@pytest.fixture
def instrument(tmp_path, monkeypatch, holds) -> Iterator[instruments.TestsInstrument]:
    """Its builds are all this interpreter."""

    def provide(address: str, *_: object, **__: object) -> ProvidedBuild:
        return ProvidedBuild(address, Path(sys.executable), holds)

    monkeypatch.setattr(provided, "provide", provide)
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    request = RunRequest(suite=load_suite("smoke"), device="cpu")
    with ExitStack() as leases:
        builds = provided.Provided(Commits(tmp_path), BuildSettings(), "torch", leases)
        yield instruments.TestsInstrument(builds, request, "cpu_time", tmp_path, TerminalRounds())


def test_a_visit_asks_no_build_again_what_it_said_when_it_was_verified(instrument, holds, monkeypatch):
    """Each answer takes an import of torch, and a bisection makes dozens of visits."""
    monkeypatch.setattr(environment, "ask_interpreter", lambda *_: pytest.fail("a build was asked again"))
    given = []

    def measure_pairs(_request, _header, interpreters, *_, **__):
        given.append(interpreters)
        raise InterruptedError

    monkeypatch.setattr(instruments, "measure_pairs", measure_pairs)

    with pytest.raises(InterruptedError):
        instrument.measure(GOOD, Visit(number=0, commit=CULPRIT, n=3), lambda _: None)

    assert given == [{"base": holds, "head": holds}]


def test_the_builds_of_a_culprit_and_its_parent_are_profiled(instrument, monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(instruments, "profile_interpreters", lambda *arguments, **_: given.append(arguments[1:3]))

    instrument.profile(GOOD, CULPRIT, 6, tmp_path / "profiled.jsonl", tmp_path / "traces")

    ((addresses, pythons),) = given
    assert addresses == {"base": f"git:{tmp_path}@{GOOD}", "head": f"git:{tmp_path}@{CULPRIT}"}
    assert pythons == {"base": Path(sys.executable), "head": Path(sys.executable)}
