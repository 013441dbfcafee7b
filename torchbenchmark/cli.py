"""The commands of the suite and the measuring engine: `run`, `list` and `install`."""

import contextlib
import dataclasses
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from torchbenchmark import check_models, doctor
from torchbenchmark.builds import cli as build_commands
from torchbenchmark.builds.provide import named_build
from torchbenchmark.canaries.measuring import Canaries
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.dry_run import Fate, Outlook, foresee
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.grid import GridOptions, kinds_and_globs, parse_batch_size
from torchbenchmark.install import install
from torchbenchmark.listing import list_models
from torchbenchmark.paired import cli as paired_commands
from torchbenchmark.planning import RunRequest
from torchbenchmark.profiles import cli as profile_commands
from torchbenchmark.records import Process, Record, Run, RunHeader, Shard, Status, read_run
from torchbenchmark.registry import load_suite
from torchbenchmark.reporter import Reporter
from torchbenchmark.runner import nothing_before, resume_run, start_run
from torchbenchmark.shards import RunPlan, parse_shard, read_plan
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, console, given_options, new_app, print_table, run_app

STYLES = {Status.OK: "green", Status.SKIPPED: "dim", Status.UNSUPPORTED: "dim"}


_BESIDE_A_PLAN = {"plan", "shard", "out", "resume", "python", "dry_run", "workers"}  # options of `run`


def register(app: typer.Typer) -> None:
    """Add this package's commands to a command line."""
    app.command("install")(install)
    app.command("run")(run)
    app.command("list")(list_models)
    paired_commands.register(app)
    profile_commands.register(app)
    doctor.register(app)
    check_models.register(app)


def run(
    context: typer.Context,
    suite: Annotated[str, typer.Option(help="A suite by name, or the path of a suite's YAML.")] = "smoke",
    device: Annotated[
        list[str] | None,
        typer.Option("--device", help="cpu (the default) or cuda; both: a run each, into OUT-cpu and OUT-cuda. *"),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", help="train or eval: only tests of that kind. Anything else is a --filter. *"),
    ] = None,
    backend: Annotated[
        list[str] | None, typer.Option("--backend", help="These backends, not the suite's (see `list`). *")
    ] = None,
    precision: Annotated[
        list[str] | None, typer.Option("--precision", help="These precisions, not the suite's (see `list`). *")
    ] = None,
    batch_size: Annotated[
        list[str] | None,
        typer.Option("--batch-size", help="These batch sizes, not the suite's; `default` is the model's own. *"),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Sizes of the models, not the suite's: full, head or tiny.")
    ] = None,
    filter: Annotated[
        list[str] | None, typer.Option("--filter", help="Only tests whose id or model this glob matches. *")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="No test whose id or model this glob matches. *")
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option("--tier", help="Only tests of this tier of the suite, or short, medium, long. *")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be measured and why the rest would not; start nothing.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The file of records to write.")] = Path("results.jsonl"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out; measures again what failed.")
    ] = False,
    rounds: Annotated[int, typer.Option(help="Rounds, each with a fresh zygote.")] = 3,
    processes: Annotated[int, typer.Option(help="Processes per test and round.")] = 1,
    python: Annotated[
        str | None,
        typer.Option(help="The build to measure: its interpreter, or an address as of `build` (default: this one)."),
    ] = None,
    subject: Annotated[str, typer.Option(help="The package whose speed is in question.")] = "torch",
    threads: Annotated[
        int | None, typer.Option(help="CPU threads of a test (default: what the suite says, or all CPUs).")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds of timed work per process (default: cpu 1, cuda 0.5).")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds after which a process is ended.")] = 600.0,
    memory_limit: Annotated[
        int | None, typer.Option(help="MiB of memory after which a test is ended (default: 90 % of the machine).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random order (default: drawn and recorded).")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Tests measured at a time (default: one on each visible GPU; on the CPU one).")
    ] = None,
    models: Annotated[
        list[Path] | None, typer.Option("--models", help="A further folder of models (may be repeated).")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="Plan of a run in shards (torchbench plan); suite and measuring options come from it."),
    ] = None,
    shard: Annotated[str, typer.Option(help="With --plan: which shard to measure, i/n from 1/n to n/n.")] = "1/1",
) -> int:
    """Measure a suite on one build and write one record a test. Options marked * may be repeated."""
    part = parse_shard(shard)
    if plan is not None:
        _refuse_what_the_plan_says(context)
        requests = [dataclasses.replace(request_of(read_plan(plan), part), workers=workers)]
    else:
        kinds, globs = kinds_and_globs(test or ())
        requests = [
            RunRequest(
                suite=load_suite(suite),
                device=device_named(one),
                selection=(*globs, *(filter or ())),
                options=GridOptions(
                    tests=kinds,
                    backends=tuple(backend or ()),
                    precisions=tuple(precision or ()),
                    batch_sizes=tuple(map(parse_batch_size, batch_size or ())),
                    tiers=tuple(tier or ()),
                    exclude=tuple(exclude or ()),
                    presets=() if preset is None else (preset,),
                ),
                rounds=rounds,
                processes=processes,
                subject=subject,
                threads=threads,
                budget_s=budget,
                timeout_s=timeout,
                memory_limit_mib=memory_limit,
                seed=seed,
                model_folders=tuple(models or ()),
                shard=part,
                workers=workers,
            )
            for one in dict.fromkeys(device or ("cpu",))
        ]
    if dry_run:
        if resume:
            raise BenchmarkError("--dry-run: a run that is resumed has its plan in its file; leave --resume out")
        for request in requests:
            print_outlook(request, foresee(request))
        return EXIT_CLEAN
    end_children_on_termination()
    files = [out] if len(requests) == 1 else [out.with_stem(f"{out.stem}-{request.device}") for request in requests]
    with contextlib.ExitStack() as leases:
        build = None if python is None else leases.enter_context(named_build(python, requests[0].subject))
        return max(
            _run_one(
                request if build is None else dataclasses.replace(request, python=build),
                file,
                resume=resume,
                python=build,
            )
            for request, file in zip(requests, files, strict=True)
        )


def _run_one(request: RunRequest, out: Path, *, resume: bool, python: Path | None) -> int:
    """Start the run that is asked for, or go on with the one that `out` holds."""
    try:
        with TerminalReporter() as reporter:
            canaries = None if request.plan is None else canaries_of(request.plan.canary, out, reporter)
            before = nothing_before if canaries is None else canaries.first
            if resume and out.exists() and out.stat().st_size > 0:
                if request.plan is not None:
                    _require_shard(out, request.plan, request.shard)
                console.print(f"resuming the run in {out}, with the options it began with", markup=False)
                done = resume_run(out, python, reporter, before=before)
            else:
                if resume:
                    console.print(f"nothing to resume in {out}: a new run", markup=False)
                done = start_run(request, out, reporter, before=before)
            if canaries is not None:
                canaries.last(done.header)
    except KeyboardInterrupt:
        if out.exists():
            console.print(f"stopped; go on with: torchbench run --out {out} --resume", markup=False)
        raise
    print_run(done)
    console.print(f"records: {out}")
    return EXIT_BROKEN if any(record.status.failed for record in done.records) else EXIT_CLEAN


def canaries_of(settings: CanarySettings | None, out: Path, reporter: Reporter) -> Canaries | None:
    """The canaries of the shard in `out`, if there are to be any; what is wrong with them is printed."""
    return None if settings is None else Canaries(settings, out, reporter, tell_of_canaries)


def tell_of_canaries(which: str, problems: list[str]) -> None:
    for problem in problems:
        console.print(f"warning: {which}: {problem}", markup=False, style="bold yellow")


def _refuse_what_the_plan_says(context: typer.Context) -> None:
    """Options that come from the plan must not be given beside it: they would have to be ignored."""
    if others := sorted(given_options(context) - _BESIDE_A_PLAN):
        raise BenchmarkError(
            f"--{others[0].replace('_', '-')}: comes from the --plan, which all shards share; "
            "leave it out, or make another plan"
        )


def request_of(plan: RunPlan, shard: Shard) -> RunRequest:
    """What a shard of a planned run measures, and how."""
    return RunRequest(
        suite=load_suite(plan.suite),
        device=device_named(plan.device),
        rounds=plan.rounds,
        processes=plan.processes,
        subject=plan.subject,
        threads=plan.threads,
        budget_s=plan.budget_s,
        timeout_s=plan.timeout_s,
        memory_limit_mib=plan.memory_limit_mib,
        seed=plan.seed,
        model_folders=plan.model_folders,
        plan=plan,
        shard=shard,
        **({} if plan.python is None else {"python": plan.python}),
    )


def _require_shard(out: Path, plan: RunPlan, shard: Shard) -> None:
    """What is resumed is what was asked for."""
    header = read_run(out).header
    if (header.run, header.shard) != (plan.run, shard):
        raise BenchmarkError(
            f"{out}: holds shard {header.shard} of run {header.run}, not shard {shard} of run {plan.run}; "
            "name the file of that shard, or a new one"
        )


def print_outlook(request: RunRequest, outlook: Sequence[Outlook]) -> None:
    """A table of what a run would do with each test, and one line of counts."""
    table = Table("test", "would be", "why")
    for one in outlook:
        style = "green" if one.fate is Fate.MEASURED else "dim"
        table.add_row(one.test, Text(one.fate, style), one.reason)
    print_table(table)
    counts = Counter(one.fate for one in outlook)
    told = ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate])
    console.print(f"suite {request.suite.name} on {request.device}, {request.rounds} rounds: {told}", markup=False)


def print_run(run: Run) -> None:
    """A table of the tests and one line of planned against delivered."""
    columns = COLUMNS.get(run.header.device, COLUMNS["cpu"])
    table = Table("test", "status", *columns, "processes")
    for record in sorted(run.records, key=lambda record: record.test):
        style = "green" if record.status is Status.OK else STYLES.get(record.status, "red")
        cells = [show(record) if record.status is Status.OK else "-" for show in columns.values()]
        table.add_row(record.test, Text(record.status, style), *cells, str(len(record.processes)))
    print_table(table)
    counts = ", ".join(f"{count} {status}" for status, count in run.counts().items() if count)
    console.print(f"planned {len(run.header.plan)}, delivered {len(run.records)}: {counts}")


def _milliseconds(channel: str, statistic: str) -> Callable[[Record], str]:
    def show(record: Record) -> str:
        values = [getattr(entry, statistic) for entry in record.process_channels(channel)]
        return f"{median(values) * 1e3:.3f} ms" if values else "-"

    return show


def _mebibytes(channel: str) -> Callable[[Record], str]:
    def show(record: Record) -> str:
        values = [entry.median for entry in record.process_channels(channel)]
        return f"{max(values) / 2**20:.1f} MiB" if values else "-"

    return show


def _count(channel: str) -> Callable[[Record], str]:
    """The smallest and the largest count, where processes differ."""

    def show(record: Record) -> str:
        counts = sorted({entry.median for entry in record.process_channels(channel)})
        return " to ".join(f"{count:g}" for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "-"

    return show


# What the table of a run shows of each test, by device.
COLUMNS: dict[str, dict[str, Callable[[Record], str]]] = {
    "cpu": {
        "latency": _milliseconds("latency", "median"),
        "CPU time": _milliseconds("cpu_time", "p20"),
        "first batch": _milliseconds("first_batch", "median"),
        "memory": _mebibytes("cpu_memory"),
    },
    "cuda": {
        "kernel time": _milliseconds("gpu_time", "median"),
        "launches": _count("launches"),
        "latency": _milliseconds("latency", "median"),
        "GPU memory": _mebibytes("gpu_memory"),
        "first batch": _milliseconds("first_batch", "median"),
    },
}


def device_named(name: str) -> str:
    if name not in ("cpu", "cuda"):
        raise BenchmarkError(f"--device {name!r}: use cpu or cuda")
    return name


def end_children_on_termination() -> None:
    """A cancelled job sends SIGTERM: leave as for Ctrl-C, so that no child is left and the file stays whole."""

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, leave)


class TerminalReporter:
    """A line per process measured, and a progress bar where there is a terminal."""

    def __init__(self) -> None:
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal or "CI" in os.environ,
        )
        self.task = self.bar.add_task("starting", total=None)

    def __enter__(self) -> "TerminalReporter":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def planned(self, header: RunHeader, to_do: int) -> None:
        total = to_do * header.rounds * header.processes
        self.bar.update(self.task, total=total, completed=0)  # a night has several runs: its canaries are two
        console.print(
            f"run {header.run}: {to_do} of {len(header.plan)} tests to measure, {header.rounds} rounds x "
            f"{header.processes} processes, {header.measuring.workers} at a time, seed {header.seed}\n"
            f"build {header.build.id}, class {header.machine_class}"
        )

    def round_started(self, number: int, rounds: int) -> None:
        console.print(f"round {number} of {rounds}: starting the build's interpreter")

    def measuring(self, test: str) -> None:
        self.bar.update(self.task, description=test)

    def measured(self, test: str, process: Process) -> None:
        self.bar.advance(self.task)
        if process.status is Status.OK:
            told = f"{process.channels['latency'].median * 1e3:.3f} ms"
            if (kernels := process.channels.get("gpu_time")) is not None:
                told += f", kernels {kernels.median * 1e3:.3f} ms"
            console.print(f"  {test}: {told} ({process.seconds:.1f} s)")

    def decided(self, record: Record) -> None:
        if record.status is not Status.OK:
            style = STYLES.get(record.status, "red")
            console.print(Text.assemble(f"  {record.test}: ", (record.status, style), f", {record.reason}"))

    def note(self, text: str) -> None:
        console.print(f"  note: {text}", style="yellow")


def main() -> None:
    """`python -m torchbenchmark`: the measuring commands alone, for a machine with nothing else installed."""
    app = new_app("Measure the PyTorch model suite.")
    register(app)
    build_commands.register(app)
    run_app(app)
