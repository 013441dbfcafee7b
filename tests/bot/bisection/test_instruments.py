"""What measures the commits of a bisection."""

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.bisection import instruments, provided
from bot.bisection.document import Visit
from bot.confirming.bench import TerminalRounds
from torchbenchmark import environment
from torchbenchmark.builds.provide import ProvidedBuild
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.paired.pairs_file import SIDES, Pair, Pairs, read_pairs
from torchbenchmark.paired.results import measured_tests
from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Channel, Process, Status, replace_lines
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


def test_a_test_that_does_not_follow_the_host_is_not_adjusted_by_it(instrument, monkeypatch):
    """The good end against itself says so: its time all but stands still while the probe beside it moves."""
    hosts = (0.4, -0.3, 0.2, 0.3, -0.4, -0.2, 0.1, -0.1)

    def measure_pairs(request, header, _interpreters, out, *_, **__):
        slower = 1.08 if request.head != request.base else 1.0
        pairs = [
            Pair(
                test=test.base,
                round=number,
                index=0,
                order=SIDES,
                base=process(number, cpu_time=0.001, host_probe=0.001),
                head=process(
                    number,
                    cpu_time=0.001 * slower * (1 + 1e-4 * number),
                    host_probe=0.001 * math.exp(hosts[number - 1]),
                ),
            )
            for number in range(1, header.rounds + 1)
            for test in measured_tests(Pairs(header, ()))
        ]
        replace_lines(out, [header, *pairs])
        return read_pairs(out)

    monkeypatch.setattr(instruments, "measure_pairs", measure_pairs)

    rehearsal = instrument.measure(GOOD, Visit(number=0, commit=GOOD, n=8), lambda _: None)
    visit = instrument.measure(GOOD, Visit(number=1, commit=CULPRIT, n=6), lambda _: None)

    assert rehearsal.values == pytest.approx([0.0] * 8, abs=1e-3)
    assert visit.values == pytest.approx([math.log(1.08)] * 6, abs=1e-3)


def process(number: int, **times: float) -> Process:
    channels = {
        name: Channel(unit="s", samples=(time,), median=time, mean=time, p20=time) for name, time in times.items()
    }
    return Process(
        round=number,
        index=0,
        zygote=f"z{number}",
        start_method="fork",
        status=Status.OK,
        started=datetime.now(UTC),
        seconds=1.0,
        channels=channels,
    )


def test_the_builds_of_a_culprit_and_its_parent_are_profiled(instrument, monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(instruments, "profile_interpreters", lambda *arguments, **_: given.append(arguments[1:3]))

    instrument.profile(GOOD, CULPRIT, 6, tmp_path / "profiled.jsonl", tmp_path / "traces")

    ((addresses, pythons),) = given
    assert addresses == {"base": f"git:{tmp_path}@{GOOD}", "head": f"git:{tmp_path}@{CULPRIT}"}
    assert pythons == {"base": Path(sys.executable), "head": Path(sys.executable)}
