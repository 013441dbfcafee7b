"""The commands `ab`, which measures two sides in pairs on this machine and judges them together, and `compare`, which
looks at what was measured before."""

import json
import os
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import provide
from torchbenchmark.channels import CHANNELS
from torchbenchmark.environment import Interpreter
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.grid import GridOptions, kinds_and_globs
from torchbenchmark.paired.pairs_file import SIDES, Pairs, PairsHeader, SideName
from torchbenchmark.paired.sides import Side, parse_side, told_of_side
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import Registry, load_suite
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, EXIT_REGRESSION, console, given_options

if TYPE_CHECKING:
    from torchbenchmark.paired.comparison import Comparison
    from torchbenchmark.paired.measurement import PairsRequest

DEFAULT_PAIRS = 6
HIGHEST_LEVEL = 0.999999  # beyond, no tail of pairs is known, and a share of it for each test and look is no number
EXIT_CODES = {"slower": EXIT_REGRESSION, "newly failing": EXIT_REGRESSION, "not measured": EXIT_BROKEN}

# What takes time to import (scipy, a second or two) is imported by the commands that compute with it.
MinutesOption = Annotated[float | None, typer.Option(help="Begin no round after so many minutes.")]
LevelOption = Annotated[float, typer.Option(help="Confidence of all intervals together.")]
TestsOption = Annotated[
    list[str] | None,
    typer.Option("--tests", "--test", help="Tests or models (globs), train or eval (may be repeated)."),
]
SuiteOption = Annotated[str, typer.Option(help="The suite that the tests are of: a name, or the path of its YAML.")]
DeviceOption = Annotated[str, typer.Option(help="cpu or cuda.")]
ThreadsOption = Annotated[
    int | None, typer.Option(help="CPU threads of a test (default: what the suite says, or all).")
]
BudgetOption = Annotated[
    float | None, typer.Option(help="Seconds of timed work per process (default: cpu 1, cuda .5).")
]
TimeoutOption = Annotated[float, typer.Option(help="Seconds after which a process is ended.")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of the order and the coins (default: drawn and recorded).")]
SubjectOption = Annotated[str, typer.Option(help="The package whose speed is in question.")]
ModelsOption = Annotated[
    list[Path] | None, typer.Option("--models", help="A further folder of models (may be repeated).")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with the pairs in --out.")]


def register(app: typer.Typer) -> None:
    app.command("ab")(ab)
    app.command("compare")(compare)


def ab(
    context: typer.Context,
    base: Annotated[str, typer.Argument(help="A build and overrides: PYTHON, release:torch==2.12.0, X@backend=jit.")],
    head: Annotated[str, typer.Argument(help="The same of the other side.")],
    tests: TestsOption = None,
    suite: SuiteOption = "smoke",
    device: DeviceOption = "cpu",
    pairs: Annotated[
        int, typer.Option(min=2, help="Pairs of each test: rounds, each with fresh zygotes of both sides.")
    ] = DEFAULT_PAIRS,
    processes: Annotated[
        int, typer.Option(min=1, help="Pairs of a test within a round; they share its zygotes, and count as one.")
    ] = 1,
    sequential: Annotated[bool, typer.Option("--sequential", help="End a test as soon as it is decided.")] = False,
    minutes: MinutesOption = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="Judge this channel (may be repeated; default: by the device).")
    ] = None,
    beyond: Annotated[
        float | None, typer.Option(help="What `no change` means, as a share (default: .01 of a GPU time, .05 else).")
    ] = None,
    level: LevelOption = 0.99,
    noise: Annotated[
        Path | None, typer.Option(help="A/A table (default: that of this class on this machine, if there is one).")
    ] = None,
    out: Annotated[Path, typer.Option(help="The file of pairs to write.")] = Path("pairs.jsonl"),
    resume: ResumeOption = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the comparison here as JSON.")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="Write it here as Markdown.")] = None,
    threads: ThreadsOption = None,
    budget: BudgetOption = None,
    timeout: TimeoutOption = 600.0,
    seed: SeedOption = None,
    subject: SubjectOption = "torch",
    models: ModelsOption = None,
) -> int:
    """Compare two builds on this machine, side by side in pairs.

    Exit code 0: nothing slower, 1: slower or newly failing, 2: nothing could be measured.
    """
    from torchbenchmark.cli import device_named, end_children_on_termination  # which registers this command
    from torchbenchmark.paired.comparison import Criterion
    from torchbenchmark.paired.measurement import measure_pairs, require_free
    from torchbenchmark.paired.noise_table import find_noise_table
    from torchbenchmark.paired.sequential import judge
    from torchbenchmark.paired.tables import markdown, verdict_line
    from torchbenchmark.paired.terminal import TerminalPairs, print_comparison

    end_children_on_termination()
    _check(level, beyond, minutes, channel, device_named(device))
    for file in (out, json_file, markdown_file):
        require_writable(file)
    require_free(out, resume=resume)
    sides = sides_of(base, head)
    criterion = Criterion(level=level, beyond=beyond, channels=tuple(dict.fromkeys(channel or ())))
    kinds, globs = kinds_and_globs(tests or ())
    run = RunRequest(
        suite=load_suite(suite),
        device=device,
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
    with ExitStack() as leases:
        request, header, interpreters = plan_sides(run, *sides, leases)
        header = header.model_copy(update={"sequential": sequential})
        table = find_noise_table(noise, header.machine_class)

        def judged(measured: Pairs) -> "tuple[Comparison, Collection[str]]":
            return judge(measured, criterion, table)

        with TerminalPairs(lambda measured: judged(measured)[0]) as reporter:
            measured = measure_pairs(
                request,
                header,
                interpreters,
                out,
                reporter,
                decided=lambda measured: judged(measured)[1],
                seconds=None if minutes is None else 60 * minutes,
                resume=resume,
                given=given_options(context),
            )
    comparison, _ = judged(measured)
    print_comparison(comparison, measured.header)
    console.print(Text(f"pairs: {out}"))
    if json_file is not None:
        write_text(json_file, json.dumps(_content(comparison, measured, out), indent=1, allow_nan=False) + "\n")
    if markdown_file is not None:
        write_text(markdown_file, markdown(comparison, measured.header))
    console.print(Text(verdict_line(comparison)), style="bold")
    return EXIT_CODES.get(comparison.verdict, EXIT_CLEAN)


def sides_of(base: str, head: str) -> tuple[Side, Side]:
    with told_of_side("base"):
        first = parse_side(base)
    with told_of_side("head"):
        return first, parse_side(head)


def _content(comparison: "Comparison", measured: Pairs, out: Path) -> dict[str, object]:
    """What --json holds: the comparison, and what it is of."""
    header = measured.header
    sides = {name: getattr(header, name) for name in SIDES}
    return {
        "kind": "comparison",
        "schema": 1,
        "out": str(out),
        "class": header.machine_class,
        **{name: {"asked": side.asked, "build": side.build.id} for name, side in sides.items()},
        "differing": header.differing,
        **comparison.model_dump(mode="json"),
    }


def plan_sides(
    run: RunRequest, base: Side, head: Side, leases: ExitStack
) -> "tuple[PairsRequest, PairsHeader, dict[SideName, Interpreter]]":
    """Both sides provided and looked at, and what will be measured. What a cache holds of them stays until the leases
    are let go."""
    from torchbenchmark.paired.measurement import PairsRequest, inspect_sides, plan_pairs

    request = PairsRequest(run, base, head)
    found: dict[str, Path] = {}
    for address in dict.fromkeys((base.build, head.build)):
        parsed = parse_address(address, run.subject)
        build = leases.enter_context(provide(parsed, BuildCache.open(None, None), subject=run.subject))
        found[address] = build.interpreter
    pythons = {name: found[request.side(name).build] for name in SIDES}
    interpreters = inspect_sides(request, pythons, run.subject)
    return request, plan_pairs(request, interpreters, Registry(run.model_folders)), interpreters


def _check(
    level: float, beyond: float | None, minutes: float | None, channels: Collection[str] | None, device: str
) -> None:
    if not 0.5 <= level <= HIGHEST_LEVEL:
        raise BenchmarkError(f"--level {level:.12g}: a confidence from .5 to {HIGHEST_LEVEL}, such as .99")
    if beyond is not None and not 0 < beyond < 1:
        raise BenchmarkError(f"--beyond {beyond:g}: a share above 0 and under 1, such as .01 for 1 %")
    if minutes is not None and not minutes > 0:
        raise BenchmarkError(f"--minutes {minutes:g}: must be more than 0")
    statistical = [
        name for name, kind in CHANNELS.items() if not kind.exact and (kind.side == "cpu" or device == "cuda")
    ]
    for name in channels or ():
        if name not in statistical:
            kind = CHANNELS.get(name)
            why = "is no channel" if kind is None else "is compared exactly anyway" if kind.exact else "needs a GPU"
            raise BenchmarkError(f"--channel {name}: {why}; those that can be judged: {', '.join(statistical)}")


def require_writable(path: Path | None) -> None:
    """Asked before anything is measured: what took hours must not end in an error. Folders that it lacks are made."""
    if path is None:
        return
    there = path.absolute()
    while not there.exists():
        there = there.parent
    if there == path.absolute():
        fits = not there.is_dir() and os.access(there, os.W_OK)
    else:
        fits = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    if not fits:
        raise BenchmarkError(f"{path}: cannot be written; name a file in a folder of your own")


def write_text(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written: {error.strerror}") from error


def compare(
    a: Annotated[Path, typer.Argument(help="A finished run (.jsonl or .jsonl.gz); or the file of pairs of an `ab`.")],
    b: Annotated[Path | None, typer.Argument(help="The run to hold against it; none for a file of pairs.")] = None,
    channel: Annotated[list[str] | None, typer.Option(help="Only this channel (may be repeated).")] = None,
    level: Annotated[float, typer.Option(help="Of pairs: confidence of all intervals together.")] = 0.99,
    beyond: Annotated[float | None, typer.Option(help="Of pairs: what `no change` means, as a share.")] = None,
    noise: Annotated[Path | None, typer.Option(help="Of pairs: the A/A table.")] = None,
) -> int:
    """Hold two finished runs against each other, or judge pairs again that `ab` has measured.

    Of two runs: exit code 1 if a test fails in B only, else 0, as times have no verdict. Of pairs: as `ab`.
    """
    if b is None:
        return _judge_again(a, level, beyond, channel, noise)
    from torchbenchmark.paired.finished import compare_runs
    from torchbenchmark.paired.terminal import print_finished
    from torchbenchmark.records import read_run

    for name in channel or ():
        if name not in CHANNELS:
            raise BenchmarkError(f"--channel {name}: is no channel; known: {', '.join(CHANNELS)}")
    found = compare_runs(read_run(a), read_run(b), tuple(channel or ()))
    print_finished(found)
    failing = any(state == "newly failing" for state, _ in found.states.values())
    return EXIT_REGRESSION if failing else EXIT_CLEAN


def _judge_again(
    path: Path,
    level: float,
    beyond: float | None,
    channel: list[str] | None,
    noise: Path | None,
) -> int:
    from torchbenchmark.paired.comparison import Criterion
    from torchbenchmark.paired.noise_table import find_noise_table
    from torchbenchmark.paired.pairs_file import read_pairs
    from torchbenchmark.paired.sequential import judge
    from torchbenchmark.paired.tables import verdict_line
    from torchbenchmark.paired.terminal import print_comparison

    measured = read_pairs(path)
    _check(level, beyond, None, channel, measured.header.device)
    criterion = Criterion(level=level, beyond=beyond, channels=tuple(dict.fromkeys(channel or ())))
    table = find_noise_table(noise, measured.header.machine_class)
    comparison, _ = judge(measured, criterion, table)
    print_comparison(comparison, measured.header)
    console.print(Text(verdict_line(comparison)), style="bold")
    return EXIT_CODES.get(comparison.verdict, EXIT_CLEAN)
