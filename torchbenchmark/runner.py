"""The driver: plans a run, measures it in rounds of isolated processes, and delivers exactly one record a test.

DESIGN 3.2: a round starts a fresh zygote and measures every undecided test once as a child of it, in random order;
nothing starts while something is timed. On a host with several GPUs each has a worker with a zygote of its own, and
the turns of a round go to whichever worker is free.
"""

import contextlib
import functools
import os
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from torchbenchmark import environment
from torchbenchmark.channels import COUNTING, TIMED_SECTION
from torchbenchmark.compile_caches import CompileCaches
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment
from torchbenchmark.foreign_text import one_line, printable
from torchbenchmark.gpu_watch import GpuWatch
from torchbenchmark.grid import GridOptions, choose
from torchbenchmark.isolation import ChildOutcome, ModelSource, Zygote, ZygoteDied
from torchbenchmark.nursery import Nursery
from torchbenchmark.places import Place, gpus_of_one_model, places
from torchbenchmark.records import (
    WHOLE,
    Channel,
    GpuState,
    Measuring,
    PlannedTest,
    Process,
    Record,
    Run,
    RunHeader,
    Shard,
    Status,
    Workload,
    read_run,
)
from torchbenchmark.registry import Registry, Suite
from torchbenchmark.reporter import Reporter
from torchbenchmark.requirements import unmet
from torchbenchmark.run_file import RunFile
from torchbenchmark.shards import RunPlan, new_run_name
from torchbenchmark.side_by_side import run_side_by_side
from torchbenchmark.throttling import Throttling
from torchbenchmark.yaml_files import first_problem

DEFAULT_BUDGET_S = {"cpu": 1.0, "cuda": 0.5}
WARMUP_CAP_BUDGETS = 4  # the warm-up may take this many times the budget of the timed section
MIN_UNIT_S = 0.010
MIN_SAMPLES = 3
DEFAULT_MEMORY_SHARE = 0.9


@dataclass(frozen=True)
class RunRequest:
    """What a user asks for; `plan_run` makes a header of it."""

    suite: Suite
    device: str
    selection: tuple[str, ...] = ()  # globs over ids and models
    options: GridOptions = field(default_factory=GridOptions)
    rounds: int = 3
    processes: int = 1
    python: Path = field(default_factory=environment.default_interpreter)
    subject: str = "torch"
    threads: int | None = None
    budget_s: float | None = None
    timeout_s: float = 600.0
    memory_limit_mib: int | None = None
    seed: int | None = None
    model_folders: tuple[Path, ...] = ()
    plan: RunPlan | None = None  # with `shard`: the run that this is a part of
    shard: Shard = WHOLE
    workers: int | None = None  # None: one for each visible GPU; on the CPU one
    spawn: bool = False  # measure in fresh interpreters instead of forks: slow, for comparison


class OtherGround(BenchmarkError):
    """An interrupted run cannot go on: build, class, environment or workload are not what it began with."""


def plan_run(request: RunRequest, interpreter: environment.Interpreter, registry: Registry) -> RunHeader:
    """The header of a new run: its plan, its seed, and what it measures where."""
    for name, value in (
        ("rounds", request.rounds),
        ("processes", request.processes),
        ("threads", request.threads),
        ("memory-limit", request.memory_limit_mib),
        ("workers", request.workers),
    ):
        if value is not None and value < 1:
            raise BenchmarkError(f"--{name} {value}: must be at least 1")
    for name, seconds in (("budget", request.budget_s), ("timeout", request.timeout_s)):
        if seconds is not None and not seconds > 0:
            raise BenchmarkError(f"--{name} {seconds}: must be more than 0 seconds")
    choice = choose(registry, request.suite, request.device, request.selection, request.options)
    experiments, elsewhere = of_this_shard(choice.tests, request)
    gpus = len(gpus_of_one_model(interpreter.gpus)) if request.device == "cuda" else None
    workers = request.workers or gpus or 1
    threads = request.threads or request.suite.threads or max(1, environment.default_threads() // workers)
    budget = request.budget_s or DEFAULT_BUDGET_S[request.device]
    started = request.plan.started if request.plan else datetime.now(UTC)
    return RunHeader(
        run=request.plan.run if request.plan else new_run_name(started),
        suite=request.suite.name,
        machine_class=environment.machine_class(interpreter, request.device, threads),
        device=request.device,
        started=started,
        seed=request.seed if request.seed is not None else secrets.randbelow(2**31),
        rounds=request.rounds,
        processes=request.processes,
        plan=_planned(experiments, request.suite, registry),
        measuring=Measuring(
            budget_s=budget,
            warmup_cap_s=WARMUP_CAP_BUDGETS * budget,
            min_unit_s=MIN_UNIT_S,
            min_samples=MIN_SAMPLES,
            threads=threads,
            timeout_s=request.timeout_s,
            memory_limit_bytes=_memory_limit(request, workers),
            workers=workers,
            gpus=gpus,
        ),
        build=interpreter.build,
        environment=environment.describe_environment(interpreter, request.device),
        harness=environment.harness_commit(),
        model_folders=tuple(str(folder.resolve()) for folder in request.model_folders),
        selection=(*request.selection, *request.options.words),
        shard=request.shard,
        elsewhere=_planned(elsewhere, request.suite, registry),
    )


def _memory_limit(request: RunRequest, workers: int) -> int:
    """In bytes, of one test."""
    if request.memory_limit_mib is not None:
        return request.memory_limit_mib * 2**20
    return int(DEFAULT_MEMORY_SHARE * environment.memory_bytes() / workers)


def _planned(experiments: Iterable[Experiment], suite: Suite, registry: Registry) -> tuple[PlannedTest, ...]:
    return tuple(
        PlannedTest(
            test=experiment.id, workload=_workload(registry, experiment), skip=suite.skip_reason(experiment) or ""
        )
        for experiment in experiments
    )


def of_this_shard(every: Sequence[Experiment], request: RunRequest) -> tuple[list[Experiment], list[Experiment]]:
    """What this shard measures, and what the others do."""
    if request.plan is None:
        if request.shard.count != 1:
            raise BenchmarkError(f"--shard {request.shard}: needs the --plan that all shards of the run have")
        return list(every), []
    mine = request.plan.models_of(request.shard)
    planned = {model for shard in request.plan.shards for model in shard}
    if differing := sorted({experiment.model for experiment in every} ^ planned):
        raise BenchmarkError(
            f"the plan of run {request.plan.run} and the suite differ in {', '.join(differing)}: the suite has changed "
            "since; make a new plan"
        )
    here = [experiment for experiment in every if experiment.model in mine]
    return here, [experiment for experiment in every if experiment.model not in mine]


def start_run(request: RunRequest, out: Path, reporter: Reporter) -> Run:
    """Measure a new run into `out`. Raises BenchmarkError if the request cannot be planned or `out` is taken."""
    registry = Registry(request.model_folders)
    interpreter = environment.inspect_interpreter(request.python, request.subject)
    if request.plan is not None and request.plan.build is not None:
        request.plan.build.require(interpreter.distributions, interpreter.build.interpreter)
    header = plan_run(request, interpreter, registry)
    with _open(out) as file:
        file.start(header)
        Runner(file, registry, interpreter, reporter, spawn=request.spawn).execute()
        return file.run()


def resume_run(out: Path, python: Path | None, reporter: Reporter, *, retry_failed: bool = True) -> Run:
    """Go on with the run in `out`: measure what is missing and, unless told not to, again what failed.

    Raises OtherGround if the build, the class or the environment is no longer what the run began with.
    """
    with _open(out) as file:
        header = read_run(out).header
        registry = Registry([Path(folder) for folder in header.model_folders])
        interpreter = environment.inspect_interpreter(python or Path(header.build.interpreter), header.build.subject)
        _require_same_ground(header, interpreter, registry, out)
        file.resume(retry_failed=retry_failed)
        Runner(file, registry, interpreter, reporter).execute()
        return file.run()


@contextmanager
def _open(out: Path) -> Iterator[RunFile]:
    file = RunFile(out)
    try:
        yield file
    finally:
        file.close()


def _require_same_ground(
    header: RunHeader, interpreter: environment.Interpreter, registry: Registry, out: Path
) -> None:
    now = environment.describe_environment(interpreter, header.device)
    where = environment.machine_class(interpreter, header.device, header.measuring.threads)
    for what, before, after in (
        ("build", header.build.id, interpreter.build.id),
        ("class", header.machine_class, where),
        ("environment", header.environment.fingerprint, now.fingerprint),
    ):
        if before != after:
            raise OtherGround(
                f"{out}: was begun on {what} {before}, this is {after}; start a new run with another --out"
            )
    gpus = len(gpus_of_one_model(interpreter.gpus)) if header.device == "cuda" else None
    if header.measuring.gpus not in (None, gpus):
        raise OtherGround(
            f"{out}: was begun on {header.measuring.gpus} GPUs, and {gpus} are visible now; start a new run"
        )
    for planned in header.plan:
        experiment = Experiment.parse(planned.test)
        if _workload(registry, experiment) != planned.workload:
            raise OtherGround(f"{out}: the workload of {planned.test} has changed since; start a new run")


def _workload(registry: Registry, experiment: Experiment) -> Workload:
    version, digest = registry.model(experiment.model).workload(experiment)
    return Workload(version=version, hash=digest)


@dataclass(frozen=True)
class _Turn:
    """How a turn of a round ended."""

    zygote_lost: bool
    again: bool = False  # nothing was noted: it is to be measured again


class Runner:
    """Measures what a run file still misses."""

    def __init__(
        self,
        file: RunFile,
        registry: Registry,
        interpreter: environment.Interpreter,
        reporter: Reporter,
        *,
        spawn: bool = False,
    ) -> None:
        self.file = file
        self.header = file.header
        self.registry = registry
        self.interpreter = interpreter
        self.reporter = reporter
        self.workloads = {planned.test: planned.workload for planned in self.header.plan}
        self.experiments = {test: Experiment.parse(test) for test in self.workloads}
        self.spawn = spawn
        measuring = self.header.measuring
        cpus = sorted(os.sched_getaffinity(0))
        self.places = places(self.header.device, measuring.workers, measuring.threads, interpreter.gpus, cpus)
        self.caches = CompileCaches(file.scratch)
        gpus = {place.gpu for place in self.places if place.gpu is not None}
        self.watches = {gpu: GpuWatch(gpu) for gpu in sorted(gpus)}
        planned = len(self.workloads) * self.header.rounds * self.header.processes
        self.throttling = Throttling(planned, reporter.note)
        self._lock = threading.RLock()  # of all that the workers share: the file, the reporter, the turns
        self._stopping = threading.Event()
        self._waiting: deque[tuple[str, int]] = deque()  # turns of the round that no worker has taken yet
        self._round = 0
        self._gate = threading.Barrier(len(self.places), action=self._open_round)
        self._all_imported = threading.Barrier(len(self.places))

    def execute(self) -> None:
        """Measure round by round until every planned test has its record."""
        self.reporter.planned(self.header, len(self._undecided()))
        self._record_what_cannot_run()
        self._decide_what_is_measured()
        with contextlib.ExitStack() as watched:
            for watch in self.watches.values():
                watched.enter_context(watch)
            run_side_by_side([functools.partial(self._work, place) for place in self.places], self._stop)
            for gpu, watch in self.watches.items():
                if watch.problem is not None:
                    self.reporter.note(f"GPU {gpu} was not watched to the end: {watch.problem}")
        assert not self._undecided(), "a planned test ended without a record"

    def _work(self, place: Place) -> None:
        """One worker: measure at `place` what no other has taken, round by round."""
        with Nursery(
            self.file,
            self.registry,
            self.interpreter,
            self.reporter,
            self._decide,
            place=place,
            stopping=self._stopping,
            spawn=self.spawn,
        ) as nursery:
            for number in range(1, self.header.rounds + 1):
                self._gate.wait()
                self._measure_round(nursery, number)

    def _open_round(self) -> None:
        """Lay out the turns of the next round, when all workers have ended the last."""
        self._round += 1
        self._waiting = deque(self._turns(self._round))
        if self._waiting:
            self.reporter.round_started(self._round, self.header.rounds)

    def _stop(self) -> None:
        self._stopping.set()
        self._gate.abort()
        self._all_imported.abort()

    def _undecided(self) -> list[str]:
        return [test for test in self.workloads if test not in self.file.records]

    def _record_what_cannot_run(self) -> None:
        skip = {planned.test: planned.skip for planned in self.header.plan}
        for test in self._undecided():
            experiment = self.experiments[test]
            entry = self.registry.model(experiment.model)
            if skip[test]:
                self._decide(test, Status.SKIPPED, skip[test])
            elif reason := entry.unsupported_reason(experiment) or self._missing_requirement(experiment.model):
                self._decide(test, Status.UNSUPPORTED, reason)

    def _decide_what_is_measured(self) -> None:
        """Write the records that a kill prevented between the last process of a test and its record."""
        for test in self._undecided():
            if processes := self.file.progress_of(test).processes:
                self._decide_if_complete(test, processes[-1])

    def _missing_requirement(self, model: str) -> str | None:
        missing = unmet(self.registry.model(model).metadata.requires, self.interpreter.distributions)
        return f"needs {', '.join(map(str, missing))} in {self.interpreter.build.interpreter}" if missing else None

    def _turns(self, number: int) -> list[tuple[str, int]]:
        """What round `number` still has to measure, (test, process index), in the order that the seed gives."""
        every = [(test, index) for test in self.workloads for index in range(self.header.processes)]
        random.Random(f"{self.header.seed}/{number}").shuffle(every)
        undecided = set(self._undecided())
        done = {
            (test, process.round, process.index)
            for test in undecided
            for process in self.file.progress_of(test).processes
        }
        return [(test, index) for test, index in every if test in undecided and (test, number, index) not in done]

    def _measure_round(self, nursery: Nursery, number: int) -> None:
        began = False
        while True:
            with self._lock:
                waiting = [test for test, _ in self._waiting]
                rounds = range(number + 1, self.header.rounds + 1) if waiting else ()
                later = {after: [test for test, _ in self._turns(after)] for after in rounds}
            zygote = nursery.zygote(number, waiting, later)
            with zygote or contextlib.nullcontext():
                if not began:
                    self._all_imported.wait()  # what one worker imports would disturb what another times
                    began = True
                if zygote is None:
                    return
                while (turn := self._next_turn()) is not None:
                    ended = self._measure_once(nursery, zygote, number, *turn)
                    if ended.again:
                        with self._lock:
                            self._waiting.append(turn)  # last in the round: the GPU cools down meanwhile
                    if ended.zygote_lost:
                        break  # the rest of the round gets a new one
                else:
                    return

    def _next_turn(self) -> tuple[str, int] | None:
        """The next turn of the round whose test an earlier process has not decided."""
        with self._lock:
            while self._waiting:
                test, index = self._waiting.popleft()
                if test not in self.file.records:
                    return test, index
        return None

    def _measure_once(self, nursery: Nursery, zygote: Zygote, number: int, test: str, index: int) -> _Turn:
        """Measure one process of `test` and note it, unless it is to be measured again."""
        experiment = self.experiments[test]
        start_method = "spawn" if nursery.spawns(experiment.model) else "fork"
        self.reporter.measuring(test)
        started, began, lost = datetime.now(UTC), time.monotonic(), False
        stages: dict[str, float] = {}
        try:
            outcome = zygote.measure(
                ModelSource(experiment.model, self.registry.model(experiment.model).folder),
                self._spec(experiment) | {"compile_cache": self.caches.turn(experiment, number)},
                start_method=start_method,
                timeout_s=self.header.measuring.timeout_s,
                memory_limit=self.header.measuring.memory_limit_bytes,
                on_stage=lambda stage: stages.setdefault(stage, time.monotonic()),
            )
        except ZygoteDied as death:
            lost = True
            outcome = ChildOutcome(None, death.status, death.reason, "", time.monotonic() - began)
        if outcome.status == Status.OK:
            self.caches.ended(experiment, number)
        gpu = self._gpu_while_timed(nursery.place, stages)
        if outcome.status == Status.OK and self.throttling.throws_away((number, test, index), gpu):
            return _Turn(lost, again=True)
        process = _process_of(
            outcome,
            round=number,
            index=index,
            zygote=zygote.name,
            start_method=start_method,
            started=started,
            device_index=nursery.place.device_index,
            gpu=gpu,
            notes=self.throttling.marks((number, test, index), gpu),
        )
        batch_size = outcome.result.get("batch_size") if outcome.result else None
        with self._lock:
            if test not in self.file.records:  # else another worker's process of it has failed meanwhile
                self.file.add_process(test, process, batch_size if isinstance(batch_size, int) else None)
                self.reporter.measured(test, process)
                self._decide_if_complete(test, process)
        return _Turn(lost)

    def _gpu_while_timed(self, place: Place, stages: Mapping[str, float]) -> GpuState | None:
        """What the GPU said between the start of the timed section and the counting; the rest moves no number."""
        if place.gpu is None or TIMED_SECTION not in stages:
            return None
        return self.watches[place.gpu].between(stages[TIMED_SECTION], stages.get(COUNTING, time.monotonic()))

    def _decide_if_complete(self, test: str, last: Process) -> None:
        """A failed process decides its test; otherwise the last of the last round does."""
        if last.status is not Status.OK:
            self._decide(test, last.status, f"round {last.round}: {last.reason}")
        elif len(self.file.progress_of(test).processes) == self.header.rounds * self.header.processes:
            self._decide(test, Status.OK, "")

    def _spec(self, experiment: Experiment) -> dict[str, Any]:
        measuring = self.header.measuring
        return {
            "test": experiment.test,
            "device": experiment.device,
            "backend": experiment.backend,
            "precision": experiment.precision,
            "batch_size": experiment.batch_size,
            "preset": experiment.preset,
            "training_mode": experiment.training_mode,
            "threads": measuring.threads,
            "budget_s": measuring.budget_s,
            "warmup_cap_s": measuring.warmup_cap_s,
            "min_unit_s": measuring.min_unit_s,
            "min_samples": measuring.min_samples,
        }

    def _decide(self, test: str, status: Status, reason: str) -> None:
        """Write the one record of `test`."""
        with self._lock:
            if test in self.file.records:
                return  # by another worker, to which the same import failed
            progress = self.file.progress_of(test)
            record = Record(
                run=self.header.run,
                test=test,
                workload=self.workloads[test],
                batch_size=progress.batch_size,
                status=status,
                reason=one_line(reason),
                ended=datetime.now(UTC),
                processes=tuple(progress.processes),
                attempts=tuple(progress.attempts),
            )
            self.file.add_record(record)
            self.caches.forget(self.experiments[test])
            self.reporter.decided(record)


def _process_of(outcome: ChildOutcome, *, notes: Sequence[str] = (), **where: Any) -> Process:
    """The process as the schema knows it; a result that does not validate is an error of the test, not of the run."""
    result = outcome.result or {}
    common = {**where, "seconds": round(outcome.seconds, 4)}
    try:
        return Process(
            **common,
            status=Status(outcome.status),
            reason=one_line(outcome.reason),
            detail=printable(outcome.detail) if outcome.status != "ok" else "",
            threads=result.get("threads"),
            inner_loops=result.get("inner_loops"),
            warmup_iterations=result.get("warmup_iterations"),
            steady=result.get("steady"),
            channels={name: Channel.model_validate(value) for name, value in result.get("channels", {}).items()},
            notes=tuple(map(one_line, [*notes, *result.get("notes", ())])),
            reasons={name: tuple(map(one_line, lines)) for name, lines in result.get("reasons", {}).items()},
        )
    except (ValidationError, ValueError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        return Process(
            **common, status=Status.ERROR, reason=one_line(f"the child's result does not validate: {problem}")
        )
