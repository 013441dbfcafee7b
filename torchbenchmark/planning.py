"""What a run is to measure, where and how: from a request to the header of its file. Starts nothing."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from torchbenchmark import environment
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment, imports_dynamo
from torchbenchmark.grid import GridOptions, choose
from torchbenchmark.places import gpus_of_one_model
from torchbenchmark.records import WHOLE, CanaryOf, Measuring, PlannedTest, RunHeader, Shard, Workload
from torchbenchmark.registry import Registry, Suite
from torchbenchmark.requirements import unmet
from torchbenchmark.shards import RunPlan, new_run_name

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
    canary: CanaryOf | None = None  # the night, begun at `started`, whose canaries these are
    started: datetime | None = None  # None: now
    counting: bool = True  # channels `operators` and `flops`
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
    # Of all, so that a shard, and a few tests of a night that are measured again, are measured as the whole suite is.
    of_the_suite = registry.experiments(request.suite, [request.device])
    experiments, elsewhere = of_this_shard(choice.tests, request)
    gpus = len(gpus_of_one_model(interpreter.gpus)) if request.device == "cuda" else None
    workers = request.workers or gpus or 1
    threads = request.threads or request.suite.threads or max(1, environment.default_threads() // workers)
    machine_class = environment.machine_class(interpreter, request.device, threads)
    budget = request.budget_s or DEFAULT_BUDGET_S[request.device]
    started = request.plan.started if request.plan else request.started or datetime.now(UTC)
    return RunHeader(
        run=_name(request, started),
        suite=request.suite.name,
        machine_class=machine_class,
        device=request.device,
        started=started,
        seed=request.seed if request.seed is not None else secrets.randbelow(2**31),
        rounds=request.rounds,
        processes=request.processes,
        plan=planned_tests(experiments, request.suite, registry, machine_class),
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
            counting=request.counting,
            dynamo=any(imports_dynamo(one.test, one.backend) for one in [*of_the_suite, *choice.tests]),
        ),
        build=interpreter.build,
        environment=environment.describe_environment(interpreter, request.device),
        harness=environment.harness_commit(),
        model_folders=tuple(str(folder.resolve()) for folder in request.model_folders),
        selection=(*request.selection, *request.options.words),
        shard=request.shard,
        elsewhere=planned_tests(elsewhere, request.suite, registry, machine_class),
        canary=request.canary,
    )


def _name(request: RunRequest, started: datetime) -> str:
    if request.canary is not None:
        return request.canary.name
    return request.plan.run if request.plan else new_run_name(started)


def _memory_limit(request: RunRequest, workers: int) -> int:
    """In bytes, of one test."""
    if request.memory_limit_mib is not None:
        return request.memory_limit_mib * 2**20
    return int(DEFAULT_MEMORY_SHARE * environment.memory_bytes() / workers)


def planned_tests(
    experiments: Iterable[Experiment], suite: Suite, registry: Registry, machine_class: str | None
) -> tuple[PlannedTest, ...]:
    return tuple(
        PlannedTest(
            test=experiment.id,
            workload=workload_of(registry, experiment, machine_class),
            skip=suite.skip_reason(experiment) or "",
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


def require_same_ground(header: RunHeader, interpreter: environment.Interpreter, registry: Registry, out: Path) -> None:
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
        if workload_of(registry, experiment, header.machine_class) != planned.workload:
            raise OtherGround(f"{out}: the workload of {planned.test} has changed since; start a new run")


def workload_of(registry: Registry, experiment: Experiment, machine_class: str | None) -> Workload:
    version, digest = registry.model(experiment.model).workload(experiment, machine_class)
    return Workload(version=version, hash=digest)


def missing_requirement(registry: Registry, experiment: Experiment, interpreter: environment.Interpreter) -> str | None:
    """What the experiment's model needs and the build's interpreter has not, in words; None if it has all."""
    missing = unmet(registry.model(experiment.model).metadata.requires, interpreter.distributions)
    return f"needs {', '.join(map(str, missing))} in {interpreter.build.interpreter}" if missing else None
