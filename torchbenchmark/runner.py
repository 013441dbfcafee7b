"""The driver: measures a run in rounds of isolated processes, and delivers exactly one record a test.

DESIGN 3.2: a round starts a fresh zygote and measures every undecided test once as a child of it, in random order;
nothing starts while something is timed. On a host with several GPUs each has a worker with a zygote of its own, and
the turns of a round go to whichever worker is free.
"""

import contextlib
import functools
import os
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from torchbenchmark import environment
from torchbenchmark.builds.cache import kept
from torchbenchmark.compile_caches import CompileCaches
from torchbenchmark.experiment import Experiment
from torchbenchmark.foreign_text import one_line
from torchbenchmark.gpu_watch import GpuWatch
from torchbenchmark.isolation import Zygote
from torchbenchmark.nursery import Nursery
from torchbenchmark.one_process import Measurer
from torchbenchmark.places import Place, places
from torchbenchmark.planning import RunRequest, missing_requirement, plan_run, require_same_ground
from torchbenchmark.records import (
    Process,
    Record,
    Run,
    RunHeader,
    Status,
    read_run,
)
from torchbenchmark.registry import Registry
from torchbenchmark.reporter import Reporter
from torchbenchmark.run_file import RunFile
from torchbenchmark.side_by_side import run_side_by_side
from torchbenchmark.throttling import Throttling


def nothing_before(header: RunHeader) -> None:
    """What is measured before a run, if nothing is."""


def start_run(
    request: RunRequest, out: Path, reporter: Reporter, *, before: Callable[[RunHeader], None] = nothing_before
) -> Run:
    """Measure a new run into `out`; `before` is called when it is planned, before its first test.

    Raises BenchmarkError if the request cannot be planned or `out` is taken.
    """
    registry = Registry(request.model_folders)
    with kept(request.python):
        interpreter = environment.inspect_interpreter(request.python, request.subject)
        if request.plan is not None and request.plan.build is not None:
            request.plan.build.require(interpreter.distributions, interpreter.build.interpreter)
        header = plan_run(request, interpreter, registry)
        with _open(out) as file:
            file.start(header)
            before(header)
            Runner(file, registry, interpreter, reporter, spawn=request.spawn).execute()
            return file.run()


def resume_run(
    out: Path,
    python: Path | None,
    reporter: Reporter,
    *,
    retry_failed: bool = True,
    before: Callable[[RunHeader], None] = nothing_before,
) -> Run:
    """Go on with the run in `out`: measure what is missing and, unless told not to, again what failed. `before` as of
    `start_run`.

    Raises OtherGround if the build, the class or the environment is no longer what the run began with.
    """
    with _open(out) as file:
        header = read_run(out).header
        registry = Registry([Path(folder) for folder in header.model_folders])
        python = python or Path(header.build.interpreter)
        with kept(python):
            interpreter = environment.inspect_interpreter(python, header.build.subject)
            require_same_ground(header, interpreter, registry, out)
            file.resume(retry_failed=retry_failed)
            before(header)
            Runner(file, registry, interpreter, reporter).execute()
            return file.run()


@contextmanager
def _open(out: Path) -> Iterator[RunFile]:
    file = RunFile(out)
    try:
        yield file
    finally:
        file.close()


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
        gpus = {place.gpu for place in self.places if place.gpu is not None}
        self.watches = {gpu: GpuWatch(gpu) for gpu in sorted(gpus)}
        self.caches = CompileCaches(file.scratch)
        self.measurer = Measurer(registry, measuring, self.header.machine_class, self.caches, self.watches)
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
            self.registry,
            self.interpreter,
            scratch=self.file.scratch,
            variables={"TORCHBENCH_RUN": self.header.run},
            note=self.reporter.note,
            is_decided=self.file.records.__contains__,
            decide=self._decide,
            place=place,
            worker=f"w{place.index}" if len(self.places) > 1 else "",
            stopping=self._stopping,
            spawn=self.spawn,
            dynamo=self.header.measuring.dynamo,
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
            elif reason := entry.unsupported_reason(experiment) or missing_requirement(
                self.registry, experiment, self.interpreter
            ):
                self._decide(test, Status.UNSUPPORTED, reason)

    def _decide_what_is_measured(self) -> None:
        """Write the records that a kill prevented between the last process of a test and its record."""
        for test in self._undecided():
            if processes := self.file.progress_of(test).processes:
                self._decide_if_complete(test, processes[-1])

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
        self.reporter.measuring(test)
        measured = self.measurer.measure(nursery, zygote, self.experiments[test], round=number, index=index)
        with self._lock:
            turn = (number, test, index)
            if measured.process.status is Status.OK and self.throttling.throws_away(turn, measured.gpu):
                return _Turn(measured.zygote_lost, again=True)
            marks = self.throttling.marks(turn, measured.gpu)
        process = measured.process.model_copy(update={"notes": (*marks, *measured.process.notes)})
        with self._lock:
            if test not in self.file.records:  # else another worker's process of it has failed meanwhile
                self.file.add_process(test, process, measured.batch_size)
                self.reporter.measured(test, process)
                self._decide_if_complete(test, process)
        return _Turn(measured.zygote_lost)

    def _decide_if_complete(self, test: str, last: Process) -> None:
        """A failed process decides its test; otherwise the last of the last round does."""
        if last.status is not Status.OK:
            self._decide(test, last.status, f"round {last.round}: {last.reason}")
        elif len(self.file.progress_of(test).processes) == self.header.rounds * self.header.processes:
            self._decide(test, Status.OK, "")

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
