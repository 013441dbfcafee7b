"""Measures pairs: in every round a fresh zygote of either side, both at once, then each test once as a child of both,
one right after the other in the order of a recorded coin. Nothing starts while something is timed."""

import contextlib
import dataclasses
import fcntl
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from torchbenchmark import environment
from torchbenchmark.compile_caches import CompileCaches
from torchbenchmark.environment import Interpreter, machine_class
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment, imports_dynamo
from torchbenchmark.gpu_watch import GpuWatch
from torchbenchmark.isolation import Zygote
from torchbenchmark.nursery import Nursery
from torchbenchmark.one_process import Measured, Measurer
from torchbenchmark.paired.pairs_file import (
    SIDES,
    MeasuredSide,
    Pair,
    PairedTest,
    Pairs,
    PairsHeader,
    SideName,
    read_pairs,
)
from torchbenchmark.paired.results import FAILURES_TO_BELIEVE, failure, measured_tests
from torchbenchmark.paired.sides import Side, told_of_side
from torchbenchmark.places import Place, places
from torchbenchmark.planning import OtherGround, RunRequest, missing_requirement, plan_run
from torchbenchmark.profiles.traces import Traces
from torchbenchmark.quantity import counted
from torchbenchmark.records import PlannedTest, Process, Status, append_line, replace_lines, require_no_special_file
from torchbenchmark.registry import Registry
from torchbenchmark.throttling import Throttling


class PairsReporter(Protocol):
    """Told what happens, for a terminal or a log."""

    def planned(self, pairs: Pairs) -> None: ...
    def round_started(self, number: int, rounds: int) -> None: ...
    def measured(self, pair: Pair) -> None: ...
    def round_ended(self, pairs: Pairs, number: int) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass(frozen=True)
class PairsRequest:
    """What to measure: `run` says which tests and how, as for a run of one build; its rounds are pairs of each test."""

    run: RunRequest
    base: Side
    head: Side

    def side(self, name: SideName) -> Side:
        return self.base if name == "base" else self.head


class NothingToCompare(BenchmarkError):
    """No test of the plan can run on both sides."""


# Which tests need no more pairs, given what was measured so far: asked before the first round and at the end of every
# round, also of those that were measured before a kill.
Decided = Callable[[Pairs], Collection[str]]


def no_test_is_decided(_: Pairs) -> Collection[str]:
    """Every test gets all its pairs."""
    return ()


def plan_pairs(request: PairsRequest, interpreters: Mapping[SideName, Interpreter], registry: Registry) -> PairsHeader:
    """The header of a new comparison. Raises BenchmarkError if the sides cannot be compared, or no test is left."""
    run = plan_run(dataclasses.replace(request.run, workers=1), interpreters["base"], registry)
    tests = tuple(_paired_test(planned, request, interpreters, registry) for planned in run.plan)
    if all(test.left_out for test in tests):
        reasons = "; ".join(list(dict.fromkeys(test.left_out for test in tests))[:3])
        raise NothingToCompare(f"no test can be compared: {reasons}")
    return PairsHeader(
        run=run.run,
        suite=run.suite,
        machine_class=run.machine_class,
        device=run.device,
        started=run.started,
        seed=run.seed,
        rounds=run.rounds,
        processes=run.processes,
        base=_measured_side(request.base, interpreters["base"]),
        head=_measured_side(request.head, interpreters["head"]),
        tests=tests,
        measuring=run.measuring.model_copy(update={"dynamo": _imports_dynamo(tests)}),
        environment=run.environment,
        harness=run.harness,
        differing=_differing_lock(interpreters),
    )


def _imports_dynamo(tests: Iterable[PairedTest]) -> bool:
    """Pairs are held against nothing but each other: their zygotes import what their own tests need."""
    every = [Experiment.parse(name) for test in tests for name in (test.base, test.head)]
    return any(imports_dynamo(one.test, one.backend) for one in every)


def _measured_side(side: Side, interpreter: Interpreter) -> MeasuredSide:
    return MeasuredSide(asked=str(side), build=interpreter.build, variables=side.variables)


def _differing_lock(interpreters: Mapping[SideName, Interpreter]) -> tuple[str, ...]:
    """What the harness brings in another version on either side: then the models differ, and not only the build."""
    base, head = interpreters["base"].lock, interpreters["head"].lock
    names = sorted(name for name in base.keys() | head.keys() if base.get(name) != head.get(name))
    return tuple(f"{name}: {base.get(name, 'absent')} against {head.get(name, 'absent')}" for name in names)


def _paired_test(
    planned: PlannedTest, request: PairsRequest, interpreters: Mapping[SideName, Interpreter], registry: Registry
) -> PairedTest:
    experiment = Experiment.parse(planned.test)
    ids: dict[SideName, str] = {}
    left_out = planned.skip
    for name in SIDES:
        with told_of_side(name):
            side = request.side(name).experiment(experiment)
        ids[name] = side.id
        unsupported = registry.model(side.model).unsupported_reason(side)
        missing = missing_requirement(registry, side, interpreters[name])
        if not left_out and (reason := unsupported or missing):
            left_out = f"{name}: {reason}"
    return PairedTest(base=ids["base"], head=ids["head"], workload=planned.workload, left_out=left_out)


# What an option came to in the plan of a comparison, by the name of the option.
_PLANNED: dict[str, Callable[[PairsHeader], object]] = {
    "pairs": lambda header: header.rounds,
    "processes": lambda header: header.processes,
    "sequential": lambda header: header.sequential,
    "seed": lambda header: header.seed,
    "suite": lambda header: header.suite,
    "tests": lambda header: ", ".join(sorted(test.base for test in header.tests)),
    "device": lambda header: header.device,
    "threads": lambda header: header.measuring.threads,
    "budget": lambda header: header.measuring.budget_s,
    "timeout": lambda header: header.measuring.timeout_s,
}
_NOT_FROM_THE_FILE = ("suite", "device")  # of the options that a resumed comparison began with: they make the plan


def measure_pairs(
    request: PairsRequest,
    header: PairsHeader,
    interpreters: Mapping[SideName, Interpreter],
    out: Path,
    reporter: PairsReporter,
    *,
    decided: Decided = no_test_is_decided,
    seconds: float | None = None,
    resume: bool = False,
    given: Collection[str] = (),
    traces: Path | None = None,
) -> Pairs:
    """Measure the pairs of a request into `out`, and return them. `header` is what `plan_pairs` made of the request.

    `seconds`: no round begins after so long. `given`: the options that a person gave, which what is resumed must have
    begun with. `traces`: where a profiled comparison leaves a trace of either side of each test. Raises BenchmarkError
    if `out` holds something, or what is resumed was begun otherwise or elsewhere.
    """
    registry = Registry(request.run.model_folders)
    with _writing(out) as scratch:
        require_free(out, resume=resume)
        if out.exists() and out.stat().st_size > 0:
            pairs = _resumed(out, header, interpreters["base"], given)
        else:
            pairs = Pairs(header, ())
            replace_lines(out, [header])
        work = _Work(request, pairs, interpreters, registry, out, scratch, reporter, traces)
        return work.execute(decided, seconds)


def require_free(out: Path, *, resume: bool) -> None:
    """Raise BenchmarkError if pairs cannot be written to `out`; asked before builds are made, which may take hours."""
    require_no_special_file(out)
    if not resume and out.exists() and out.stat().st_size > 0:
        raise BenchmarkError(f"{out}: exists already; go on with --resume, or name another file with --out")


@contextmanager
def _writing(out: Path) -> Iterator[Path]:
    """Alone with the file; gives a folder for what is only needed meanwhile."""
    out = out.absolute()
    scratch = out.with_name(f"{out.name}.scratch")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        opened = open(out.with_name(f".{out.name}.lock"), "ab")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BenchmarkError(f"{out}: cannot be written: {error.strerror}; name another file with --out") from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _busy(out) from error
        if not _is_there(lock):  # its last holder has removed it since it was opened: another may hold the next one
            raise _busy(out)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            out.with_name(f".{out.name}.lock").unlink(missing_ok=True)


def _busy(out: Path) -> BenchmarkError:
    return BenchmarkError(f"{out}: another torchbench measures into it; wait, or name another file")


def _is_there(lock: BinaryIO) -> bool:
    """Whether the open file is still the one of its name."""
    try:
        return os.path.samestat(os.fstat(lock.fileno()), Path(lock.name).stat())
    except FileNotFoundError:
        return False


def _resumed(out: Path, asked: PairsHeader, interpreter: Interpreter, given: Collection[str]) -> Pairs:
    """The pairs in a file, if what is asked for now goes on with them: pairs of two plans or of two machines are not
    added up. Options that were not given are those that it began with."""
    pairs = read_pairs(out)
    begun = pairs.header
    for name in SIDES:
        then, now = getattr(begun, name), getattr(asked, name)
        if (then.asked, then.build.id) != (now.asked, now.build.id):
            raise OtherGround(
                f"{out}: was begun with {name} {then.asked} ({then.build.id}), this is {now.asked} ({now.build.id}); "
                "name another file with --out"
            )
    for option, planned_as in _PLANNED.items():
        then, now = planned_as(begun), planned_as(asked)
        if then != now and (option in given or option in _NOT_FROM_THE_FILE):
            so = f"name the same --{option}" if option in _NOT_FROM_THE_FILE else f"leave --{option} out to go on so"
            raise BenchmarkError(
                f"{out}: was begun with --{option} {then}, this is {now}; {so}, or name another file with --out"
            )
    if begun.profiled != asked.profiled:
        which = "profile" if begun.profiled else "ab"
        raise BenchmarkError(
            f"{out}: was begun by `torchbench {which}`; go on with that, or name another file with --out"
        )
    for what, then, now in (
        ("class", begun.machine_class, machine_class(interpreter, begun.device, begun.measuring.threads)),
        # The code that measures is one of its facts; a change of the driver alone moves no number.
        ("environment", begun.environment.fingerprint, asked.environment.fingerprint),
    ):
        if then != now:
            raise OtherGround(
                f"{out}: was begun on {what} {then}, this is {now}; go on there, or name another file with --out"
            )
    tests = {test.base: test for test in asked.tests}
    for test in begun.tests:
        if tests.get(test.base) != test:
            raise OtherGround(f"{out}: {test.base} is not the workload it was; name another file with --out")
    replace_lines(out, [pairs.header, *pairs.pairs])  # without a last line that was torn by a kill
    return pairs


class _Work:
    """One comparison being measured."""

    def __init__(
        self,
        request: PairsRequest,
        pairs: Pairs,
        interpreters: Mapping[SideName, Interpreter],
        registry: Registry,
        out: Path,
        scratch: Path,
        reporter: PairsReporter,
        traces: Path | None = None,
    ) -> None:
        self.request = request
        self.header = pairs.header
        self.pairs = list(pairs.pairs)
        self.interpreters = interpreters
        self.registry = registry
        self.out = out
        self.scratch = scratch
        self.reporter = reporter
        self.traces = Traces(traces, scratch, reporter.note)
        self.tests = {test.base: test for test in measured_tests(pairs)}
        self.experiments = {
            test.base: {"base": Experiment.parse(test.base), "head": Experiment.parse(test.head)}
            for test in self.tests.values()
        }
        self.decided: set[str] = set()
        self.not_imported: dict[SideName, dict[str, Process]] = {name: {} for name in SIDES}  # in this round, by test
        measuring = self.header.measuring
        gpus = interpreters["base"].gpus
        self.place = places(self.header.device, 1, measuring.threads, gpus, sorted(os.sched_getaffinity(0)))[0]
        self.watches = {self.place.gpu: GpuWatch(self.place.gpu)} if self.place.gpu is not None else {}
        self.throttling = Throttling(len(self.tests) * self.header.rounds * self.header.processes, reporter.note)
        self.measurers = {
            name: Measurer(registry, measuring, self.header.machine_class, CompileCaches(scratch / name), self.watches)
            for name in SIDES
        }

    def execute(self, decided: Decided, seconds: float | None) -> Pairs:
        began = time.monotonic()
        self.reporter.planned(self._so_far())
        for difference in self.header.differing:
            self.reporter.note(f"the sides differ beside their builds: {difference}")
        self._drop(decided, 0)
        with contextlib.ExitStack() as stack:
            for watch in self.watches.values():
                stack.enter_context(watch)
            nurseries = {name: stack.enter_context(self._nursery(name, self.place)) for name in SIDES}
            for number in range(1, self.header.rounds + 1):
                turns = self._turns(number)
                if not turns:  # measured before a kill, unless no test is left
                    if any(pair.round == number for pair in self.pairs):
                        self._drop(decided, number)
                    continue
                if seconds is not None and time.monotonic() - began >= seconds:
                    self.reporter.note(f"the budget of {seconds:g} s is spent after {counted(number - 1, 'round')}")
                    break
                self.reporter.round_started(number, self.header.rounds)
                self._measure_round(nurseries, number, turns)
                self._drop(decided, number)
                self.reporter.round_ended(self._so_far(), number)
        return self._so_far()

    def _so_far(self) -> Pairs:
        return Pairs(self.header, tuple(self.pairs))

    def _drop(self, decided: Decided, number: int) -> None:
        """Leave out of the later rounds what is decided after round `number`, by its pairs or by its failures. What was
        killed and goes on asks the same after each round as if it had not been."""
        seen = Pairs(self.header, tuple(pair for pair in self.pairs if pair.round <= number))
        self.decided |= set(decided(seen))
        for test in self.tests:
            mine = seen.of_test(test)
            for processes in ([pair.base for pair in mine], [pair.head for pair in mine]):
                failed = [process for process in processes if process is not None and process.status is not Status.OK]
                if len(failed) >= FAILURES_TO_BELIEVE and failure(processes):
                    self.decided.add(test)

    def _nursery(self, name: SideName, place: Place) -> Nursery:
        side: Side = self.request.side(name)

        def decide(test: str, status: Status, reason: str) -> None:
            self.not_imported[name][self._base_of(name, test)] = _import_failure(status, reason)

        return Nursery(
            self.registry,
            self.interpreters[name],
            scratch=self.scratch / name,
            variables={"TORCHBENCH_RUN": self.header.run, **side.variables},
            note=lambda text: self.reporter.note(f"{name}: {text}"),
            is_decided=lambda test: self._base_of(name, test) in self.decided | self.not_imported[name].keys(),
            decide=decide,
            place=place,
            worker=name,
            stopping=threading.Event(),
            dynamo=self.header.measuring.dynamo,
        )

    def _base_of(self, name: SideName, test: str) -> str:
        return next(base for base, planned in self.tests.items() if getattr(planned, name) == test)

    def _turns(self, number: int) -> list[tuple[str, int]]:
        """What round `number` still has to measure, (test, index), in the order that the seed gives."""
        every = [(test, index) for test in self.tests for index in range(self.header.processes)]
        random.Random(f"{self.header.seed}/{number}").shuffle(every)
        done = {(pair.test, pair.round, pair.index) for pair in self.pairs}
        return [
            (test, index) for test, index in every if test not in self.decided and (test, number, index) not in done
        ]

    def _measure_round(
        self, nurseries: Mapping[SideName, Nursery], number: int, turns: Sequence[tuple[str, int]]
    ) -> None:
        waiting = list(turns)
        while waiting:
            zygotes, failed = self._bring_up(nurseries, number, [test for test, _ in waiting])
            waiting = [(test, index) for test, index in waiting if test not in failed]
            with contextlib.ExitStack() as stack:
                for zygote in zygotes.values():
                    stack.enter_context(zygote)
                if len(zygotes) < len(SIDES):
                    return  # every test that is left failed to import on one side
                while waiting:
                    test, index = waiting.pop(0)
                    if test in self.decided:
                        continue
                    lost, again = self._measure_pair(nurseries, zygotes, number, test, index)
                    if again:
                        waiting.append((test, index))  # last in the round: the GPU cools down meanwhile
                    if lost:
                        break  # the rest of the round gets new ones, on both sides

    def _bring_up(
        self, nurseries: Mapping[SideName, Nursery], number: int, tests: Sequence[str]
    ) -> tuple[dict[SideName, Zygote], set[str]]:
        """The zygotes of both sides, imported side by side; those that are there, if one side has none. And the tests
        that a side could not import, which have had their turn in this round."""
        ids = {name: [getattr(self.tests[test], name) for test in tests] for name in SIDES}
        dynamo = any(nursery.dynamo for nursery in nurseries.values())
        for name in SIDES:
            nurseries[name].dynamo = dynamo  # the sides differ in nothing but the build
            nurseries[name].begin(number, ids[name])
        found: dict[SideName, Zygote] = {}
        for name in SIDES:
            if (zygote := nurseries[name].zygote(number, ids[name], {})) is not None:
                found[name] = zygote
        return found, self._note_import_failures(number)

    def _note_import_failures(self, number: int) -> set[str]:
        """The tests that a side could not import, noted as a pair each. Both sides have been asked by now: what imports
        on neither is no difference between them."""
        done = {(pair.test, pair.round, pair.index) for pair in self.pairs}
        failed = set()
        for test in [test for test in self.tests if any(test in self.not_imported[name] for name in SIDES)]:
            index = next(index for index in range(len(done) + 1) if (test, number, index) not in done)
            sides = {
                name: self.not_imported[name].pop(test).model_copy(update={"round": number, "index": index})
                for name in SIDES
                if test in self.not_imported[name]
            }
            pair = Pair(test=test, round=number, index=index, order=SIDES, **sides)
            self._add(pair)
            self.reporter.measured(pair)
            failed.add(test)
        return failed

    def _measure_pair(
        self,
        nurseries: Mapping[SideName, Nursery],
        zygotes: Mapping[SideName, Zygote],
        number: int,
        test: str,
        index: int,
    ) -> tuple[bool, bool]:
        """Measure both sides in the order of the coin, and note the pair. (a zygote is lost, measure the pair again)"""
        coin = random.Random(f"{self.header.seed}/{number}/{test}/{index}").random() < 0.5
        order = SIDES if coin else SIDES[::-1]
        found: dict[SideName, Measured] = {}
        for name in order:
            experiment = self.experiments[test][name]
            found[name] = self.measurers[name].measure(
                nurseries[name], zygotes[name], experiment, round=number, index=index, profile=self._profile(test, name)
            )
            self.traces.keep(test, name)
            if found[name].zygote_lost:
                break
        lost = any(one.zygote_lost for one in found.values())
        turn = (number, test, index)
        for one in found.values():
            if one.process.status is Status.OK and self.throttling.throws_away(turn, one.gpu):
                return lost, True
        processes = {name: self._marked(turn, one) for name, one in found.items()}
        pair = Pair(
            test=test,
            round=number,
            index=index,
            order=order,
            base=processes.get("base"),
            head=processes.get("head"),
        )
        self._add(pair)
        self.reporter.measured(pair)
        return lost, False

    def _profile(self, test: str, name: SideName) -> dict[str, object] | None:
        return {"trace": self.traces.wanted(test, name)} if self.header.profiled else None

    def _marked(self, turn: tuple[int, str, int], one: Measured) -> Process:
        marks = self.throttling.marks(turn, one.gpu)
        return one.process.model_copy(update={"notes": (*marks, *one.process.notes)})

    def _add(self, pair: Pair) -> None:
        append_line(self.out, pair)
        self.pairs.append(pair)


def _import_failure(status: Status, reason: str) -> Process:
    """A side of a pair that never came to be measured; the other is not measured either, and may not import as well."""
    return Process(
        round=1,
        index=0,
        zygote="none",
        start_method="fork",
        status=status,
        reason=reason,
        started=datetime.now(UTC),
        seconds=0.0,
    )


def inspect_sides(request: PairsRequest, pythons: Mapping[SideName, Path], subject: str) -> dict[SideName, Interpreter]:
    """Ask the interpreters of both sides what they hold; one that serves both is asked once."""
    asked: dict[Path, Interpreter] = {}
    for name in SIDES:
        python = pythons[name]
        if python not in asked:
            asked[python] = environment.inspect_interpreter(python, subject)
    found = {name: asked[pythons[name]] for name in SIDES}
    require_same_gpus(request, found)
    return found


def require_same_gpus(request: PairsRequest, interpreters: Mapping[SideName, Interpreter]) -> None:
    base, head = (interpreters[name].gpus for name in SIDES)
    if request.run.device == "cuda" and base != head:
        raise BenchmarkError(f"base sees the GPUs {', '.join(base) or 'none'}, head {', '.join(head) or 'none'}")
