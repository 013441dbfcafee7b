"""The command `profile`: two sides profiled by turns, and what inside the model differs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.grid import GridOptions, kinds_and_globs
from torchbenchmark.paired.cli import (
    BudgetOption,
    DeviceOption,
    LevelOption,
    MinutesOption,
    ModelsOption,
    ResumeOption,
    SeedOption,
    SubjectOption,
    SuiteOption,
    TestsOption,
    ThreadsOption,
    TimeoutOption,
    require_writable,
    sides_of,
    write_text,
)
from torchbenchmark.paired.pairs_file import SIDES, Pairs, read_pairs
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import load_suite
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, console, given_options, print_table

if TYPE_CHECKING:
    from torchbenchmark.profiles.attribution import Attribution

DEFAULT_PAIRS = 6


def register(app: typer.Typer) -> None:
    app.command("profile")(profile)


def profile(
    context: typer.Context,
    base: Annotated[str | None, typer.Argument(help="A build and overrides, as of `ab`: PYTHON, X@env.NAME=1.")] = None,
    head: Annotated[str | None, typer.Argument(help="The same of the other side.")] = None,
    tests: TestsOption = None,
    suite: SuiteOption = "smoke",
    device: DeviceOption = "cpu",
    pairs: Annotated[int, typer.Option(min=2, help="Pairs of each test, each with fresh zygotes.")] = DEFAULT_PAIRS,
    minutes: MinutesOption = None,
    level: LevelOption = 0.99,
    out: Annotated[Path, typer.Option(help="The file of profiled pairs to write.")] = Path("profiles.jsonl"),
    resume: ResumeOption = False,
    from_file: Annotated[Path | None, typer.Option("--from", help="Tell again what this file of pairs holds.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the difference here as JSON.")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="Write it here as Markdown.")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw bars of each test into this folder (needs matplotlib, `pictures`).")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Keep a trace of either side of each test in this folder, gzip.")
    ] = None,
    paths: Annotated[
        Path | None, typer.Option(help="Paths that a change touched, one a line: told beside their operators.")
    ] = None,
    tree: Annotated[
        Path | None, typer.Option(help="With --paths: the checkout of the subject, for its own list of operators.")
    ] = None,
    threads: ThreadsOption = None,
    budget: BudgetOption = None,
    timeout: TimeoutOption = 600.0,
    seed: SeedOption = None,
    subject: SubjectOption = "torch",
    models: ModelsOption = None,
) -> int:
    """Profile two builds by turns, and tell what differs by operator and by kernel.

    Exit code 0, also if nothing differs; 2: no test has profiles of both sides.
    """
    from torchbenchmark.cli import device_named, end_children_on_termination  # which registers this command
    from torchbenchmark.paired.comparison import Criterion
    from torchbenchmark.paired.measurement import require_free
    from torchbenchmark.paired.results import judge_pairs
    from torchbenchmark.paired.terminal import TerminalPairs
    from torchbenchmark.pictures import require_matplotlib
    from torchbenchmark.profiles.difference import attribute_pairs
    from torchbenchmark.profiles.measuring import profile_sides, touched_by

    end_children_on_termination()
    device_named(device)
    if not 0.5 <= level < 1:
        raise BenchmarkError(f"--level {level:.12g}: a confidence from .5 to under 1, such as .99")
    if tree is not None and paths is None:
        raise BenchmarkError("--tree: only with --paths, which it explains")
    for file in (json_file, markdown_file):
        require_writable(file)
    if picture is not None:
        require_matplotlib()
    for name, folder in (("--picture", picture), ("--traces", traces)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise BenchmarkError(f"{folder}: is no folder; {name} names one for a file a test")
    touched = touched_by(paths, tree) if paths is not None else None
    if from_file is not None:
        if base is not None:
            raise BenchmarkError("--from: tells what was measured, so no sides are named with it")
        measured = read_pairs(from_file)
        attribution = attribute_pairs(measured, level, touched)
    elif base is None or head is None:
        raise BenchmarkError("name both sides, BASE and HEAD, or a file of profiled pairs with --from")
    else:
        require_writable(out)
        require_free(out, resume=resume)
        kinds, globs = kinds_and_globs(tests or ())
        run = RunRequest(
            suite=load_suite(suite),
            device=device,
            selection=globs,
            options=GridOptions(tests=kinds),
            rounds=pairs,
            subject=subject,
            threads=threads,
            budget_s=budget,
            timeout_s=timeout,
            seed=seed,
            model_folders=tuple(models or ()),
        )
        with TerminalPairs(lambda so_far: judge_pairs(so_far, Criterion(level=level))) as reporter:
            found = profile_sides(
                run,
                *sides_of(base, head),
                out,
                reporter,
                level=level,
                traces=traces,
                touched=touched,
                seconds=None if minutes is None else 60 * minutes,
                resume=resume,
                given=given_options(context),
            )
        measured, attribution = found.pairs, found.attribution
        console.print(Text(f"profiled pairs: {out}"))
    _tell(attribution, measured, json_file, markdown_file, picture)
    return EXIT_CLEAN if any(one.accounts for one in attribution.tests) else EXIT_BROKEN


def _tell(
    attribution: "Attribution",
    measured: Pairs,
    json_file: Path | None,
    markdown_file: Path | None,
    picture: Path | None,
) -> None:
    from torchbenchmark.profiles.picture import draw_attribution
    from torchbenchmark.profiles.tables import headline, how_judged, markdown, notes_of, table_of

    for one in attribution.tests:
        if one.accounts:
            console.print(
                Text(f"{one.test}{'' if one.test == one.head_test else f' against {one.head_test}'}"), style="bold"
            )
        for account in one.accounts:
            print_table(table_of(account))
        for note in notes_of(one):
            console.print(Text(note), style="yellow")
    console.print(Text(how_judged(attribution, max((one.pairs for one in attribution.tests), default=0))))
    if json_file is not None:
        write_text(json_file, json.dumps(_content(attribution, measured), indent=1, allow_nan=False) + "\n")
    if markdown_file is not None:
        write_text(markdown_file, markdown(attribution, measured.header))
    if picture is not None:
        for one in attribution.tests:
            if one.accounts:
                draw_attribution(one, picture / f"{_slug(one.test)}.png")
    for one in attribution.tests:
        console.print(Text(headline(one)), style="bold")


def _slug(test: str) -> str:
    from torchbenchmark.profiles.traces import file_name

    return file_name(test, "profile").removesuffix(".json.gz")


def _content(attribution: "Attribution", measured: Pairs) -> dict[str, object]:
    """What --json holds: the difference, and what it is of."""
    header = measured.header
    sides = {name: getattr(header, name) for name in SIDES}
    return {
        "kind": "attribution",
        "schema": 1,
        "class": header.machine_class,
        **{name: {"asked": side.asked, "build": side.build.id} for name, side in sides.items()},
        **attribution.model_dump(mode="json"),
    }
