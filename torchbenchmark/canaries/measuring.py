"""Measures the canaries of one shard of a night, right before and right after it, on the same machine.

One record per planned canary in each of the two runs, whatever happens: what cannot be measured is recorded with its
reason and told, and the night goes on. A run that was killed goes on in its file, as the night's own does.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.canaries.frozen import FrozenRecord, frozen_before, frozen_build
from torchbenchmark.canaries.settings import SUBJECT, CanarySettings
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.grid import GridOptions, choose
from torchbenchmark.planning import RunRequest, planned_tests
from torchbenchmark.records import WHOLE, Build, CanaryOf, PlannedTest, Record, Run, RunHeader, Status, read_run
from torchbenchmark.registry import Registry, load_suite
from torchbenchmark.reporter import Reporter
from torchbenchmark.run_file import RunFile
from torchbenchmark.runner import resume_run, start_run

Turn = Literal["first", "last"]
TURNS: tuple[Turn, ...] = ("first", "last")
FEWEST = 5  # canaries, below which the mean over them says too little
NOTHING_FROZEN = "not-frozen"  # id of the build of canaries that were never measured here


def canary_file(out: Path, turn: Turn) -> Path:
    """Beside the file of the shard whose canaries these are."""
    return out.with_name(f"{out.stem}.canary-{turn}.jsonl")


@dataclass(frozen=True)
class Canaries:
    """The canaries of one shard, whose records go into `out`."""

    settings: CanarySettings
    out: Path
    reporter: Reporter
    tell: Callable[[str, list[str]], None]  # which canaries they are, and what is wrong with them

    def first(self, night: RunHeader) -> None:
        """To be called between the planning of the shard and its first test."""
        self._measure("first", night)

    def last(self, night: RunHeader) -> None:
        """To be called when the shard is measured. If no first canaries were measured before it, none ever can be."""
        if not _is_whole(canary_file(self.out, "first"), night, "first"):
            self.give_up("first", night, "the shard was measured without them")
        self._measure("last", night)

    def give_up(self, turn: Turn, night: RunHeader, reason: str) -> None:
        """Record all that is not measured yet as an error."""
        file = canary_file(self.out, turn)
        try:
            _fill(file, self.settings, night, turn, reason)
        except Exception as problem:
            self.tell(f"the {turn} canaries of run {night.run}", [f"no record could be kept: {_told(problem)}"])
            return
        self._tell_of(read_run(file))

    def _measure(self, turn: Turn, night: RunHeader) -> None:
        try:
            if _is_whole(canary_file(self.out, turn), night, turn):
                return
            run = _measured(self.settings, night, turn, canary_file(self.out, turn), self.reporter)
        except Exception as problem:  # whatever is wrong with canaries stops no night
            self.give_up(turn, night, _told(problem))
        else:
            self._tell_of(run)

    def _tell_of(self, run: Run) -> None:
        if told := problems(run):
            self.tell(str(run.header.canary), told)


def _told(problem: Exception) -> str:
    return str(problem) if isinstance(problem, BenchmarkError) else f"{type(problem).__name__}: {problem}"


def problems(run: Run) -> list[str]:
    """What a person should know of a run of canaries; nothing if all are measured."""
    told = [
        f"{record.test} is not measured: {record.status}, {record.reason}"
        for record in run.records
        if record.status not in (Status.OK, Status.SKIPPED)
    ]
    told += [f"{test} has no record" for test in run.missing]
    measured = run.counts()[Status.OK]
    if measured < FEWEST:
        told.append(f"{measured} canaries are measured, and at least {FEWEST} should be")
    return told


def completed(run: Run, reason: str) -> Run:
    """The run with an error for every planned canary that has no record."""
    return Run(run.header, (*run.records, *_errors(run.header, run.missing, reason)), run.missing_shards)


def not_measured(settings: CanarySettings, night: RunHeader, turn: Turn, reason: str) -> Run:
    """The canaries of a shard of which nothing has come, each with the reason."""
    return completed(Run(_header(settings, night, turn, None), ()), reason)


def _measured(settings: CanarySettings, night: RunHeader, turn: Turn, file: Path, reporter: Reporter) -> Run:
    with frozen_build(settings, BuildCache.open()) as frozen:
        measuring = night.measuring
        request = RunRequest(
            suite=load_suite(settings.suite),
            device=night.device,
            rounds=night.rounds,
            processes=night.processes,
            python=frozen.interpreter,
            subject=SUBJECT,
            threads=measuring.threads,
            budget_s=measuring.budget_s,
            timeout_s=measuring.timeout_s,
            memory_limit_mib=_mebibytes(measuring.memory_limit_bytes),
            model_folders=tuple(map(Path, night.model_folders)),
            workers=measuring.workers,
            canary=CanaryOf(run=night.run, shard=night.shard, turn=turn, lock=frozen.lock),
            started=night.started,
        )
        if _begun(file, night, turn) is None:
            file.unlink(missing_ok=True)  # of a night that is over
            return start_run(request, file, reporter)
        return resume_run(file, frozen.interpreter, reporter, retry_failed=False)


def _mebibytes(limit: int | None) -> int | None:
    return None if limit is None else max(1, limit // 2**20)


def _begun(file: Path, night: RunHeader, turn: Turn) -> Run | None:
    """What the file holds of these canaries; None if nothing."""
    if not file.exists() or file.stat().st_size == 0:
        return None
    run = read_run(file)
    wanted = CanaryOf(run=night.run, shard=night.shard, turn=turn)
    return run if run.header.canary is not None and run.header.run == wanted.name else None


def _is_whole(file: Path, night: RunHeader, turn: Turn) -> bool:
    run = _begun(file, night, turn)
    return run is not None and not run.missing


def _fill(file: Path, settings: CanarySettings, night: RunHeader, turn: Turn, reason: str) -> None:
    """Give every planned canary that has no record in the file one that says why."""
    try:
        begun = _begun(file, night, turn) is not None
    except BenchmarkError:
        begun = False  # damaged: what it held is lost
    if not begun:
        file.unlink(missing_ok=True)
    writer = RunFile(file)
    try:
        if begun:
            writer.resume(retry_failed=False)
        else:
            writer.start(_header(settings, night, turn, _known(settings)))
        for record in _errors(writer.header, writer.run().missing, reason):
            processes = tuple(writer.progress_of(record.test).processes)
            writer.add_record(record.model_copy(update={"processes": processes}))
    finally:
        writer.close()


def _known(settings: CanarySettings) -> FrozenRecord | None:
    try:
        return frozen_before(settings, BuildCache.open())
    except BenchmarkError:
        return None  # no cache that could be opened


def _header(settings: CanarySettings, night: RunHeader, turn: Turn, known: FrozenRecord | None) -> RunHeader:
    """Of canaries that are not measured: planned as the others, on what was frozen once."""
    nothing = Build(id=NOTHING_FROZEN, subject=SUBJECT, version="none", python="none", interpreter="")
    canary = CanaryOf(run=night.run, shard=night.shard, turn=turn, lock=known.lock if known else "")
    return night.model_copy(
        update={
            "run": canary.name,
            "suite": load_suite(settings.suite).name,
            "plan": planned_canaries(
                settings, night.device, tuple(map(Path, night.model_folders)), night.machine_class
            ),
            "build": known.build if known else nothing,
            "selection": (),
            "shard": WHOLE,
            "elsewhere": (),
            "canary": canary,
        }
    )


def planned_canaries(
    settings: CanarySettings, device: str, model_folders: Sequence[Path], machine_class: str | None = None
) -> tuple[PlannedTest, ...]:
    """Every canary that each of the two runs has a record of; their workloads as they are on a machine of that
    class."""
    registry, suite = Registry(model_folders), load_suite(settings.suite)
    return planned_tests(choose(registry, suite, device, (), GridOptions()).tests, suite, registry, machine_class)


def _errors(header: RunHeader, tests: Collection[str], reason: str) -> list[Record]:
    return [
        Record(
            run=header.run,
            test=planned.test,
            workload=planned.workload,
            status=Status.SKIPPED if planned.skip else Status.ERROR,
            reason=one_line(planned.skip or reason),
            ended=datetime.now(UTC),
        )
        for planned in header.plan
        if planned.test in tests
    ]
