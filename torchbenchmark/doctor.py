"""The command `doctor`: what makes this machine noisy, and with --aa how noisy it is."""

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from torchbenchmark import environment
from torchbenchmark.channels import CHANNELS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.grid import GridOptions, kinds_and_globs
from torchbenchmark.paired.cli import (
    BudgetOption,
    DeviceOption,
    ModelsOption,
    ResumeOption,
    SeedOption,
    SubjectOption,
    SuiteOption,
    TestsOption,
    ThreadsOption,
    TimeoutOption,
    plan_sides,
    require_writable,
)
from torchbenchmark.paired.pairs_file import Pairs, read_pairs
from torchbenchmark.paired.sides import parse_side
from torchbenchmark.planning import RunRequest
from torchbenchmark.records import require_no_special_file
from torchbenchmark.registry import load_suite
from torchbenchmark.terminal import EXIT_CLEAN, console, given_options, print_table

if TYPE_CHECKING:
    from torchbenchmark.machine_noise import Finding
    from torchbenchmark.paired.noise_table import NoiseTable

AA_PAIRS = 10
AA_PROCESSES = 2
_WITHOUT_AA = {"suite", "device", "threads"}
_BESIDE_FROM = {"aa", "pairs_file", "table"}


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    context: typer.Context,
    aa: Annotated[
        bool, typer.Option("--aa", help="Measure a build against itself, and write the noise table of this machine.")
    ] = False,
    build: Annotated[str | None, typer.Option(help="With --aa: the build (default: this interpreter).")] = None,
    tests: TestsOption = None,
    suite: SuiteOption = "smoke",
    device: DeviceOption = "cpu",
    pairs: Annotated[int, typer.Option(min=3, help="With --aa: pairs of each test.")] = AA_PAIRS,
    processes: Annotated[int, typer.Option(min=1, help="With --aa: processes of a test and zygote.")] = AA_PROCESSES,
    out: Annotated[Path, typer.Option(help="With --aa: the file of pairs to write.")] = Path("aa.jsonl"),
    resume: ResumeOption = False,
    pairs_file: Annotated[
        Path | None, typer.Option("--from", help="With --aa: make the table of these pairs, and measure nothing.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="With --aa: where the table goes (default: where `ab` looks for it).")
    ] = None,
    threads: ThreadsOption = None,
    budget: BudgetOption = None,
    timeout: TimeoutOption = 600.0,
    seed: SeedOption = None,
    subject: SubjectOption = "torch",
    models: ModelsOption = None,
) -> int:
    """Say what makes this machine noisy, each with the cure; with --aa, measure how noisy it is."""
    from torchbenchmark.cli import device_named, end_children_on_termination  # which registers this command

    given = given_options(context)
    _refuse_what_would_be_ignored(given)
    if not aa:
        from torchbenchmark.machine_noise import examine, of_this_machine

        chosen = threads or load_suite(suite).threads or environment.default_threads()
        _print_findings(examine(of_this_machine(), chosen, device_named(device)))
        return EXIT_CLEAN
    end_children_on_termination()
    require_writable(table)
    if table is not None:
        require_no_special_file(table)
    if pairs_file is not None:
        measured = read_pairs(pairs_file)
    else:
        kinds, globs = kinds_and_globs(tests or ())
        run = RunRequest(
            suite=load_suite(suite),
            device=device_named(device),
            selection=globs,
            options=GridOptions(tests=kinds),
            rounds=pairs,
            processes=processes,
            subject=subject,
            threads=threads,
            budget_s=budget,
            timeout_s=timeout,
            seed=seed,
            model_folders=tuple(models or ()),
        )
        measured = _measure(run, build or str(environment.default_interpreter()), out, resume=resume, given=given)
    _write_table(measured, table)
    return EXIT_CLEAN


def _refuse_what_would_be_ignored(given: Collection[str]) -> None:
    """Who asks for pairs wants a table, and who names what to measure wants it measured."""
    if "aa" not in given:
        allowed, why = _WITHOUT_AA, "only with --aa, which measures how noisy the machine is"
    elif "pairs_file" in given:
        allowed, why = _BESIDE_FROM, "not with --from, which measures nothing"
    else:
        return
    if others := sorted(set(given) - allowed):
        option = "from" if others[0] == "pairs_file" else others[0]
        raise BenchmarkError(f"--{option}: {why}; see --help")


def _measure(run: RunRequest, build: str, out: Path, *, resume: bool, given: Collection[str]) -> Pairs:
    from torchbenchmark.paired.comparison import Criterion
    from torchbenchmark.paired.measurement import measure_pairs, require_free
    from torchbenchmark.paired.results import judge_pairs
    from torchbenchmark.paired.terminal import TerminalPairs

    side = parse_side(build)
    require_writable(out)
    require_free(out, resume=resume)
    with ExitStack() as leases:
        request, header, interpreters = plan_sides(run, side, side, leases)
        with TerminalPairs(lambda measured: judge_pairs(measured, Criterion())) as reporter:
            return measure_pairs(request, header, interpreters, out, reporter, resume=resume, given=given)


def _write_table(measured: Pairs, path: Path | None) -> None:
    from torchbenchmark.paired.noise_table import default_path
    from torchbenchmark.paired.results import noise_table_of

    header = measured.header
    if header.base.build.id != header.head.build.id or header.base.variables != header.head.variables:
        raise BenchmarkError("an A/A table is made of pairs of one build against itself; these are of two")
    if any(test.base != test.head for test in header.tests):
        raise BenchmarkError("an A/A table is made of pairs of one experiment; these differ in an override")
    noise = noise_table_of(measured)
    target = path or default_path(header.machine_class)
    try:
        noise.write(target)
    except OSError as error:
        raise BenchmarkError(f"{target}: cannot be written: {error.strerror}") from error
    _print_noise(noise)
    console.print(Text(f"noise table: {target}"))


def _print_findings(findings: "Sequence[Finding]") -> None:
    table = Table("", "what", "seen", "cure", box=None)
    for one in findings:
        mark = Text("noisy", style="yellow") if one.noisy else Text("ok", style="green")
        table.add_row(mark, Text(one.what), Text(one.seen), Text(one.cure if one.noisy else ""))
    print_table(table)
    noisy = sum(one.noisy for one in findings)
    console.print(
        f"{noisy} of {len(findings)} make this machine noisy; how noisy it is, `torchbench doctor --aa` measures"
    )


def _print_noise(noise: "NoiseTable") -> None:
    table = Table(box=None)
    for heading in ("test", "channel", "pairs", "spread", "zygote", "process", "iteration", "of a pair"):
        table.add_column(heading, justify="left" if heading in ("test", "channel") else "right")
    for row in (row for row in noise.series if CHANNELS[row.channel].judged):
        shares = (row.spread, row.sd_zygote, row.sd_process, row.sd_iteration, row.pair_sd)
        table.add_row(Text(row.test), row.channel, str(row.pairs), *(_share(value) for value in shares))
    print_table(table)
    channels = Table(box=None)
    for heading in ("channel", "tests", "of a pair", "degrees", "margin", "slope on the probe"):
        channels.add_column(heading, justify="left" if heading == "channel" else "right")
    for one in noise.channels:
        slope = "" if one.slope is None else f"{one.slope:.2f}"
        channels.add_row(
            one.channel, str(one.tests), _share(one.pair_sd), f"{one.degrees:.1f}", _share(one.margin), slope
        )
    print_table(channels)
    for exception in noise.not_exact:
        values = ", ".join(f"{value:.12g}" for value in exception.values)
        console.print(Text(f"not the same every time: {exception.test} {exception.channel}: {values}"), style="yellow")
    if not noise.not_exact:
        console.print("every exact count is the same in all processes")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2%}"
