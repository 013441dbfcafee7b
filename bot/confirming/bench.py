"""The bench of this machine (baselines/confirming/bench.py): pairs of two builds, and one build measured again, as it
is asked for. Every ask has a number and files of its own in a folder of the night, so that a bench that is asked the
same again after a kill measures nothing twice."""

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from rich.text import Text

from baselines.confirming.bench import Decided, Ended, LogRatios, PairsWanted, Values
from baselines.series import NightSummary
from baselines.store import Store
from bot.config import NightlyConfig
from bot.confirming.builds_of_nights import BuildsOfNights
from bot.errors import BotError
from bot.run_request import run_request
from torchbenchmark.builds.cache import kept
from torchbenchmark.cli import TerminalReporter
from torchbenchmark.paired.measurement import NothingToCompare, PairsRequest, inspect_sides, measure_pairs, plan_pairs
from torchbenchmark.paired.noise_table import NoiseTable, find_noise_table
from torchbenchmark.paired.pair_series import log_ratios
from torchbenchmark.paired.pairs_file import SIDES, Pair, Pairs, SideName
from torchbenchmark.paired.results import collapse, measured_tests
from torchbenchmark.paired.sides import Side
from torchbenchmark.paired.values import values_of
from torchbenchmark.planning import OtherGround, RunRequest
from torchbenchmark.quantity import counted
from torchbenchmark.records import Record, Run, Status
from torchbenchmark.registry import Registry
from torchbenchmark.runner import resume_run, start_run
from torchbenchmark.terminal import console

ASKS = "confirm"  # in `work`: what was measured for the asks of a night, until it is concluded
_NEVER_STARTED = "none"  # the zygote of a process whose model was not imported


class Builds(Protocol):
    """Where the interpreters of builds are found."""

    def interpreter(self, build: str) -> Path | None:
        """An interpreter that holds the build of this id now; None if there is none to be had."""

    def why_not(self, build: str) -> str:
        """Why there is none."""


def bench_of_night(
    config: NightlyConfig, store: Store, tonight: NightSummary, history: Iterable[NightSummary]
) -> "MachineBench":
    """The bench of the machine that has measured tonight, for tonight's build and those of the nights of a history."""
    measured = [tonight.build, *(night.build for night in history)]
    builds = BuildsOfNights(store, config.work / "builds", config.subject, measured)
    return MachineBench(run_request(config), builds, config.work / ASKS / tonight.run, tonight.machine_class)


def closing_bench(
    config: NightlyConfig, store: Store, tonight: NightSummary, history: Iterable[NightSummary]
) -> "MachineBench":
    """The same, for what is asked before alerts close: its asks are numbered for themselves, as a start after a kill
    may find the others concluded."""
    bench = bench_of_night(config, store, tonight, history)
    bench.folder = bench.folder / "closing"
    return bench


class OtherClass(BotError):
    """This machine is not of the class of the night."""


class MachineBench:
    """A `Bench` of one machine.

    Wanted pairs of the same two builds are one comparison and share their rounds. Several comparisons are measured one
    after the other, each to its end: they share no evidence, a comparison keeps its compile caches only while it goes
    on, and so two sides of a pair are never further apart than they must be. `decided` is asked after every round of
    any of them, with the pairs of all.
    """

    runners = 1

    def __init__(self, request: RunRequest, builds: Builds, folder: Path, machine_class: str | None = None) -> None:
        """`request` is how the night is measured. `folder` is for the asks of one night, and is kept until that is
        concluded. `machine_class` is that of the night, which this machine has to be of; None asks nothing."""
        self.request = request
        self.builds = builds
        self.folder = folder
        self.machine_class = machine_class
        self.processes_used = 0  # measured for the asks so far, before a kill or after it
        self._asks = 0

    def has(self, build: str, runner: int = 0) -> bool:
        return self.builds.interpreter(build) is not None

    def pairs(
        self, wanted: Sequence[PairsWanted], rounds: int, decided: Decided, runner: int = 0
    ) -> Sequence[Sequence[LogRatios]]:
        """See Bench. Times of the CPU side are adjusted by the host probe as `torchbench ab` adjusts them: from the
        third pair of a test on, unless the probe itself differs between the sides."""
        if runner != 0:
            raise BotError(f"runner {runner} is asked for pairs, and this machine is the only one, 0")
        groups: dict[tuple[str, str], dict[str, int]] = {}
        for index, one in enumerate(wanted):
            if groups.setdefault((one.base, one.head), {}).setdefault(one.test, index) != index:
                raise BotError(f"pairs of {one.test} on {one.base} and {one.head} are asked for twice at once")
        asked = {"pairs": [dataclasses.asdict(one) for one in wanted], "rounds": rounds}
        ask = self._begin(asked)
        so_far = _SoFar(decided, [() for _ in wanted])
        for number, ((base, head), indices) in enumerate(groups.items(), start=1):
            group = _Group(base, head, indices, rounds, ask.with_name(f"{ask.stem}-pairs-{number}.jsonl"))
            if not so_far.left.issuperset(indices.values()):
                self._measure(group, so_far)
        return so_far.ratios

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        ask = self._begin({"again": list(tests), "build": build, "processes": processes})
        if not tests:
            return {}
        run = self._run(tests, build, processes, ask.with_name(f"{ask.stem}-run.jsonl"))
        return {record.test: _values(record) for record in run.records if record.status is Status.OK}

    def one_by_one(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Sequence[Ended]]:
        """See Bench. In one run a test that failed is not measured again: it has further runs, of one process each."""
        ask = self._begin({"one by one": list(tests), "build": build, "processes": processes})
        found: dict[str, list[Ended]] = {test: [] for test in tests}
        number = 0
        while lacking := [test for test in tests if len(found[test]) < processes]:
            number += 1
            rounds = processes if number == 1 else 1
            run = self._run(lacking, build, rounds, ask.with_name(f"{ask.stem}-run-{number}.jsonl"))
            for record in run.records:
                found[record.test] += _ends(record)
        return found

    def _begin(self, asked: dict[str, Any]) -> Path:
        """The file of the next ask, which says what is asked for. Raises BotError if that is not what was begun."""
        self._asks += 1
        file = self.folder / f"{self._asks:03}.json"
        again = f"remove {self.folder} to measure anew what is to be confirmed"
        try:
            if file.exists():
                if json.loads(file.read_bytes()) != asked:
                    raise BotError(f"{file}: was begun before a kill, and asked for something else; {again}")
                return file
            self.folder.mkdir(parents=True, exist_ok=True)
            scratch = file.with_name(f".{file.name}.tmp")
            scratch.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
            scratch.replace(file)
        except ValueError as error:
            raise BotError(f"{file}: not JSON ({error}); {again}") from error
        except OSError as error:
            raise BotError(f"{file}: cannot be read or written: {error.strerror}; see to the folder `work`") from error
        return file

    def _interpreter(self, build: str) -> Path:
        python = self.builds.interpreter(build)
        if python is None:
            raise BotError(f"build {build} cannot be measured again: {self.builds.why_not(build)}")
        return python

    def _measure(self, group: "_Group", so_far: "_SoFar") -> None:
        run = dataclasses.replace(
            self.request, selection=tuple(group.indices), rounds=group.rounds, processes=1, plan=None
        )
        request = PairsRequest(run, Side(group.base), Side(group.head))
        pythons: dict[SideName, Path] = {
            "base": self._interpreter(group.base),
            "head": self._interpreter(group.head),
        }
        with ExitStack() as leases:
            for python in pythons.values():
                leases.enter_context(kept(python))
            interpreters = inspect_sides(request, pythons, run.subject)
            for name in SIDES:
                _require_build(interpreters[name].build.id, request.side(name).build, pythons[name])
            try:
                header = plan_pairs(request, interpreters, Registry(run.model_folders))
            except NothingToCompare as reason:
                console.print(f"no pairs of {group.base} and {group.head}: {reason}", markup=False, style="yellow")
                return
            self._require_class(header.machine_class)
            noise = find_noise_table(None, header.machine_class)
            with _of_this_night(self.folder):
                measured = measure_pairs(
                    request,
                    header,
                    interpreters,
                    group.file,
                    TerminalRounds(),
                    decided=lambda pairs: so_far.leaving(group, pairs, noise),
                    resume=True,
                )
        self.processes_used += sum(map(_processes, measured.pairs))

    def _run(self, tests: Sequence[str], build: str, rounds: int, out: Path) -> Run:
        request = dataclasses.replace(
            self.request, selection=tuple(tests), rounds=rounds, processes=1, python=self._interpreter(build)
        )
        with _of_this_night(self.folder), TerminalReporter() as reporter:
            if out.exists() and out.stat().st_size > 0:
                measured = resume_run(out, request.python, reporter, retry_failed=False)
            else:
                measured = start_run(request, out, reporter)
        _require_build(measured.header.build.id, build, request.python)
        self._require_class(measured.header.machine_class)
        self.processes_used += sum(len(record.processes) for record in measured.records)
        return measured

    def _require_class(self, found: str) -> None:
        if self.machine_class is not None and found != self.machine_class:
            raise OtherClass(
                f"this machine is of class {found}, and the night of class {self.machine_class}: "
                "confirm it on a machine like those that have measured it"
            )


@dataclasses.dataclass(frozen=True)
class _Group:
    """The wanted pairs of two builds."""

    base: str
    head: str
    indices: Mapping[str, int]  # by test, of the wanted
    rounds: int
    file: Path


class _SoFar:
    """The pairs of one ask so far, and which of the wanted need no more."""

    def __init__(self, decided: Decided, ratios: list[Sequence[LogRatios]]) -> None:
        self.decided = decided
        self.ratios = ratios
        self.left: set[int] = set()

    def leaving(self, group: _Group, pairs: Pairs, noise: NoiseTable | None) -> Collection[str]:
        """The tests of a group that leave its next rounds, given its pairs so far."""
        if pairs.pairs:  # else no round has ended
            for test in measured_tests(pairs):
                self.ratios[group.indices[test.base]] = tuple(log_ratios(collapse(pairs, test), noise))
            self.left |= set(self.decided(tuple(self.ratios)))
        return [test for test, index in group.indices.items() if index in self.left]


@contextmanager
def _of_this_night(folder: Path) -> Iterator[None]:
    """What a killed start began on another ground does not go on."""
    try:
        yield
    except OtherGround as problem:
        what = str(problem).partition(";")[0]
        raise BotError(f"{what}; remove {folder} to measure anew what is to be confirmed") from problem


def _require_build(found: str, wanted: str, python: Path) -> None:
    if found != wanted:
        raise BotError(f"{python}: holds build {found} and not {wanted} any more; start again")


def _processes(pair: Pair) -> int:
    """How many processes a pair came to."""
    return sum(process is not None and process.zygote != _NEVER_STARTED for process in (pair.base, pair.head))


def _values(record: Record) -> Values:
    """One value a process of each channel that all processes have."""
    locations = [values_of(process).locations for process in record.processes]
    names = set.intersection(*(set(one) for one in locations))
    return {name: tuple(one[name] for one in locations) for name in sorted(names)}


def _ends(record: Record) -> list[Ended]:
    """How each process of a record ended; at least one, also of a test that none was started for."""
    ends = [
        Ended(one.status, one.reason, values_of(one).locations if one.status is Status.OK else {})
        for one in record.processes
    ]
    if record.status is not Status.OK and all(one.status is Status.OK for one in ends):
        ends.append(Ended(record.status, record.reason))
    return ends


class TerminalRounds:
    """A PairsReporter that tells of rounds and failures. Verdicts are for whoever asked."""

    def planned(self, pairs: Pairs) -> None:
        header = pairs.header
        tests = measured_tests(pairs)
        there = f"; {counted(len(pairs.pairs), 'pair')} are there from before" if pairs.pairs else ""
        self._say(
            f"base {header.base.build.id} against head {header.head.build.id}: {counted(len(tests), 'test')}, "
            f"up to {counted(header.rounds, 'pair')} each{there}"
        )
        for test in header.tests:
            if test.left_out:
                self.note(f"left out: {test.base}: {test.left_out}")

    def round_started(self, number: int, rounds: int) -> None:
        self._say(f"round {number} of {rounds}")

    def measured(self, pair: Pair) -> None:
        for name, process in (("base", pair.base), ("head", pair.head)):
            if process is not None and process.status is not Status.OK:
                self.note(f"{pair.test}: {name}: {process.status} ({process.reason})")

    def round_ended(self, pairs: Pairs, number: int) -> None:
        """Nothing to tell before it is judged."""

    def note(self, text: str) -> None:
        self._say(f"  note: {text}", "yellow")

    def _say(self, text: str, style: str | None = None) -> None:
        console.print(Text(text), style=style)
