"""The commands `ab`, which measures two sides in pairs, and `compare`, which looks at what was measured before."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import provide
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.grid import GridOptions
from torchbenchmark.paired.measurement import PairsRequest, inspect_sides, measure_pairs
from torchbenchmark.paired.pairs_file import SIDES, Pair, Pairs, SideName
from torchbenchmark.paired.sides import Side, parse_side
from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Status
from torchbenchmark.registry import load_suite
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, EXIT_REGRESSION, console, print_table

DEFAULT_PAIRS = 6
EXIT_CODES = {"slower": EXIT_REGRESSION, "newly failing": EXIT_REGRESSION, "not measured": EXIT_BROKEN}


def register(app: typer.Typer) -> None:
    app.command("ab")(ab)


def ab(
    base: Annotated[
        str, typer.Argument(help="A build, and overrides: /venv/bin/python, release:torch==2.12.0, X@backend=inductor.")
    ],
    head: Annotated[str, typer.Argument(help="The same of the other side.")],
    tests: Annotated[
        list[str] | None, typer.Option("--tests", "--test", help="Tests or models (globs; may be repeated).")
    ] = None,
    suite: Annotated[
        str, typer.Option(help="The suite that the tests are of, by name or by the path of its YAML.")
    ] = "smoke",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    pairs: Annotated[
        int, typer.Option(help="Pairs of each test: rounds, each with fresh zygotes of both sides.")
    ] = DEFAULT_PAIRS,
    processes: Annotated[
        int, typer.Option(help="Pairs of a test in each round; they share its zygotes, and count as one.")
    ] = 1,
    sequential: Annotated[bool, typer.Option("--sequential", help="End a test as soon as it is decided.")] = False,
    minutes: Annotated[float | None, typer.Option(help="Begin no round after so many minutes.")] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="Judge this channel (may be repeated; default: by the device).")
    ] = None,
    beyond: Annotated[
        float | None, typer.Option(help="What `no change` means, as a share: .01 (default: gpu .01, cpu .05).")
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence of all intervals together.")] = 0.99,
    noise: Annotated[
        Path | None, typer.Option(help="A/A table (default: that of this class, by `doctor --aa`).")
    ] = None,
    out: Annotated[Path, typer.Option(help="The file of pairs to write.")] = Path("pairs.jsonl"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the pairs in --out.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the comparison here as JSON.")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="Write it here as Markdown.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads of a test.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds of timed work per process (default: cpu 1, cuda 0.5).")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds after which a process is ended.")] = 600.0,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the order and the coins (default: drawn and recorded).")
    ] = None,
    subject: Annotated[str, typer.Option(help="The package whose speed is in question.")] = "torch",
    models: Annotated[list[Path] | None, typer.Option("--models", help="A further folder of models.")] = None,
) -> int:
    """Compare two builds on this machine, side by side in pairs.

    Exit code 0: nothing slower, 1: slower or newly failing, 2: nothing could be measured.
    """
    from torchbenchmark.cli import end_children_on_termination  # which registers this command
    from torchbenchmark.paired.noise_table import find_noise_table
    from torchbenchmark.paired.tables import markdown, verdict_line

    end_children_on_termination()
    criterion = criterion_of(level, beyond, channel)
    request = PairsRequest(
        run=RunRequest(
            suite=load_suite(suite),
            device=device_named(device),
            selection=tuple(tests or ()),
            options=GridOptions(),
            rounds=pairs,
            processes=processes,
            subject=subject,
            threads=threads,
            budget_s=budget,
            timeout_s=timeout,
            seed=seed,
            model_folders=tuple(models or ()),
        ),
        base=parse_side(base),
        head=parse_side(head),
    )
    with ExitStack() as leases:
        pythons = provide_sides(request, subject, leases)
        interpreters = inspect_sides(request, pythons, subject)
        with TerminalPairs(criterion, sequential) as reporter:
            reporter.find_noise = lambda machine_class: find_noise_table(noise, machine_class)
            measured = measure_pairs(
                request,
                interpreters,
                out,
                reporter,
                decided=reporter.decided,
                seconds=None if minutes is None else 60 * minutes,
                resume=resume,
            )
    comparison, _ = reporter.judge(measured)
    reporter.print_comparison(comparison)
    console.print(f"pairs: {out}", markup=False)
    if json_file is not None:
        write(json_file, json.dumps(as_json(comparison, measured), indent=1, allow_nan=False) + "\n")
    if markdown_file is not None:
        write(markdown_file, markdown(comparison, measured.header))
    console.print(Text(verdict_line(comparison)), style="bold")
    return EXIT_CODES.get(comparison.verdict, EXIT_CLEAN)


def provide_sides(request: PairsRequest, subject: str, leases: ExitStack) -> dict[SideName, Path]:
    """The interpreters of both sides; what a cache holds of them stays until the leases are let go."""
    cache = BuildCache.open(None, None)
    found: dict[str, Path] = {}
    for name in SIDES:
        address = request.side(name).build
        if address not in found:
            parsed = parse_address(address, subject)
            build = leases.enter_context(provide(parsed, cache, BuildSettings(), subject=subject))
            found[address] = build.interpreter
    return {name: found[request.side(name).build] for name in SIDES}
