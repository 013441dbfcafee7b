"""`torchbench score`: scores results against a reference, or makes a reference of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from score.errors import ScoreError
from score.explain import Contribution, contributions, time_sentence, top_movers
from score.inputs import find_reference, join_latencies, read_results, reference_names
from score.taxonomy import published_taxonomy
from score.v1 import ScoreV1, score_v1
from torchbenchmark.formats import Measurements, read_latencies, write_reference
from torchbenchmark.terminal import console, print_table


def register(app: typer.Typer) -> None:
    app.command("score")(score)


def score(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS...",
            help="Records of torchbench, pytest-benchmark JSON or a reference YAML; several files are joined.",
        ),
    ],
    reference: Annotated[
        str | None,
        typer.Option(
            help=f"A built-in reference ({', '.join(reference_names())}), or any file of results. It scores 1000."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="A test of the reference without a result is an error.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the tests that moved the total most.")] = False,
    models: Annotated[
        list[Path] | None, typer.Option("--models", help="A further folder of models, as of `run` (may be repeated).")
    ] = None,
    make_reference: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write the results as a reference YAML; needs no --reference.")
    ] = None,
) -> None:
    """Score V1 of RESULTS against a reference: 1000 is the reference, more is faster."""
    if reference is None and make_reference is None:
        raise ScoreError(
            f"score: no --reference; name one ({', '.join(reference_names())}), give a file of results, "
            "or write one with --make-reference OUT"
        )
    parts = read_results(results)
    latencies = join_latencies(results, parts)
    answer: dict[str, object] = {}
    # Scored before anything is written: a wrong reference leaves no file behind.
    if reference is not None:
        baseline = read_latencies(find_reference(reference))
        scored = score_v1(baseline, latencies, published_taxonomy(models or ()).domain_of, strict=strict)
        ranked = contributions(scored.tests)
        answer |= scored.as_json()
        if explain:
            answer["explain"] = [moved.as_json() for moved in ranked]
        if not as_json:
            _print_score(scored, reference)
            if explain:
                _print_movers(top_movers(ranked), len(ranked))
    if make_reference is not None:
        _make_reference(make_reference, results, parts, latencies)
        answer["made-reference"] = {"path": str(make_reference), "tests": len(latencies)}
        if not as_json:
            console.print(f"wrote {make_reference}: a reference of {len(latencies)} tests", markup=False)
    if as_json:
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))


def _make_reference(
    out: Path, results: Sequence[Path], parts: Sequence[Measurements], latencies: dict[str, float]
) -> None:
    if out.exists() and any(out.samefile(path) for path in results):
        raise ScoreError(f"{out}: --make-reference would overwrite the results it is made of; name another file")
    write_reference(out, latencies, [part.provenance for part in parts])


def _print_score(scored: ScoreV1, reference: str) -> None:
    console.print(f"Score V1 against {reference}", markup=False)
    table = Table(box=None, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("total", f"{scored.total:.2f}", style="bold")
    for name, value in scored.subscores.items():
        table.add_row(name, "no test" if value is None else f"{value:.2f}")
    speedup = scored.jit_speedup
    table.add_row("jit-speedup", "no test" if speedup is None else f"{speedup:.4f}")
    console.print(table)
    console.print(time_sentence(scored.total))
    coverage = scored.coverage
    console.print(
        f"coverage: {len(coverage.scored)} of {coverage.reference} tests of the reference ({coverage.fraction:.1%})"
    )
    _print_names("without a result", coverage.missing)
    _print_names("not in the reference, not counted", coverage.extra)
    _print_names("not in the jit-speedup, no eager result", scored.jit_without_eager)


def _print_names(what: str, tests: Sequence[str]) -> None:
    if tests:
        console.print(f"{what} ({len(tests)}): {', '.join(tests)}", markup=False)


def _print_movers(movers: Sequence[Contribution], scored: int) -> None:
    if not movers:
        console.print("no test moved the total")
        return
    rows = [
        (
            moved.test,
            f"{moved.reference:.6g}",
            f"{moved.result:.6g}",
            f"{moved.ratio:.4f}",
            f"{moved.weight:.5f}",
            f"{moved.contribution:+.6f}",
            f"{moved.points:+.2f}",
        )
        for moved in movers
    ]
    headings = ("test", "reference s", "result s", "ratio", "weight", "contribution", "points")
    table = Table(title=f"Moved the total most: {len(movers)} of {scored} tests", title_justify="left", box=None)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "test" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    print_table(table)
