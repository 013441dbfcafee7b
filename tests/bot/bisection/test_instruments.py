"""What measures the commits of a bisection."""

import math
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
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

METADATA = Path(__file__).parent / "model_of_package" / "works" / "metadata.yaml"
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


@pytest.fixture(scope="module")
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


LATE = """
import importlib
import sys
from pathlib import Path
import torch
from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    PRESETS = {{"tiny": Preset(2, 2, {{}})}}

    def setup(self):
        side = "head" if "head" in Path.cwd().parts[-2] else "base"
        with open({told!r}, "a") as file:
            print(side, "torch._dynamo" in sys.modules, file=file)
        self.module = torch.nn.Linear(4, 4)
        self.example_inputs = (torch.ones(2, 4),)
        if side == "head":
            importlib.import_module("torch._dynamo")
"""


def test_by_a_time_nothing_is_counted_and_what_one_side_imports_late_both_import_in_later_rounds(instrument, tmp_path):
    told = tmp_path / "told"
    folder = tmp_path / "models" / "late"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(LATE.format(told=str(told)))
    shutil.copy(METADATA, folder)
    (tmp_path / "late.yaml").write_text(
        "name: late\ndescription: That model.\nmodels: [late]\ntests: [eval]\npreset: tiny\n"
    )
    suite = load_suite(str(tmp_path / "late.yaml"))
    request = RunRequest(suite=suite, device="cpu", threads=1, budget_s=0.02, model_folders=(folder.parent,))

    visit = replace(instrument, request=request).measure(GOOD, Visit(number=1, commit=CULPRIT, n=2), lambda _: None)
    assert len(visit.values) == 2
    assert sorted(told.read_text().splitlines()) == ["base False", "base True", "head False", "head True"]
    (file,) = tmp_path.glob("001-*.jsonl")
    given = {name for pair in read_pairs(file).pairs for name in pair.base.channels}
    assert "cpu_time" in given and not {"operators", "flops"} & given


@pytest.mark.parametrize(
    ("channel", "counting"),
    [("cpu_time_adjusted", False), ("gpu_time", False), ("first_batch", True), ("cpu_memory", True)],
)
def test_what_imports_are_a_part_of_is_measured_as_a_night_measures_it(instrument, monkeypatch, channel, counting):
    asked = []

    def measure_pairs(_request, header, *_, **__):
        asked.append(header)
        raise InterruptedError

    monkeypatch.setattr(instruments, "measure_pairs", measure_pairs)

    with pytest.raises(InterruptedError):
        replace(instrument, channel=channel).measure(GOOD, Visit(number=0, commit=CULPRIT, n=1), lambda _: None)
    assert [header.measuring.counting for header in asked] == [counting]


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
