"""The command `list`: what there is to measure."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from torchbenchmark.backends import BACKENDS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import PRECISIONS
from torchbenchmark.gpu_batches import PRESET
from torchbenchmark.model_filter import ModelFilter
from torchbenchmark.offers import offers
from torchbenchmark.registry import ModelEntry, Registry, Suite, load_suite, suite_names
from torchbenchmark.terminal import console, least_width_of

HEADINGS = ("model", "domain", "tests", "devices", "presets", "tier")
READABLE = 30  # columns that a description needs beside them


def list_models(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL...]", help="Tell of these models what there is to measure.")
    ] = None,
    suite: Annotated[list[str] | None, typer.Option("--suite", help="Only models of this suite, or YAML. *")] = None,
    category: Annotated[list[str] | None, typer.Option("--category", help="Only models of this category. *")] = None,
    domain: Annotated[list[str] | None, typer.Option("--domain", help="Only models of this domain. *")] = None,
    device: Annotated[list[str] | None, typer.Option("--device", help="Only models for cpu, or for cuda. *")] = None,
    test: Annotated[list[str] | None, typer.Option("--test", help="Only models that train, or eval. *")] = None,
    tier: Annotated[
        list[str] | None, typer.Option("--tier", help="Only models whose processes are short, medium or long. *")
    ] = None,
    requires: Annotated[
        list[str] | None, typer.Option("--requires", help="Only models that need this library beside torch. *")
    ] = None,
    without: Annotated[list[str] | None, typer.Option("--without", help="No models that need this library. *")] = None,
    models: Annotated[list[Path] | None, typer.Option("--models", help="A further folder of models. *")] = None,
) -> None:
    """List the models, the suites with what they measure, the backends and the precisions; or the models that options
    choose; or, of models that are named, what can be measured. Options marked * may be repeated."""
    registry = Registry(tuple(models or ()))
    wanted = ModelFilter(
        suites=tuple(suite or ()),
        categories=tuple(category or ()),
        domains=tuple(domain or ()),
        devices=tuple(device or ()),
        tests=tuple(test or ()),
        tiers=tuple(tier or ()),
        requires=tuple(requires or ()),
        without=tuple(without or ()),
    )
    if names and wanted:
        raise BenchmarkError("models are named, or chosen by options; not both")
    if names:
        for entry in [registry.model(name) for name in names]:
            print_offers(entry)
        return
    if wanted:
        print_models(wanted.chosen(registry))
        return
    print_models(registry.models.values())
    for name in suite_names():
        print_suite(name, load_suite(name))
    for name, backend in BACKENDS.items():
        where = "" if len(backend.devices) > 1 else f" ({backend.devices[0]} only)"
        console.print(f"backend {name}{where}: {backend.meaning}", markup=False)
    console.print(f"precisions: {', '.join(PRECISIONS)}")
    console.print("what there is of a model, and its batch sizes: torchbench list MODEL", markup=False)


def print_models(entries: Iterable[ModelEntry]) -> None:
    """A table or, where its last column would be too narrow to read, two lines for each model."""
    entries = list(entries)
    narrow = _table([(entry.name, *_facts(entry)) for entry in entries], HEADINGS)
    if least_width_of(narrow) + READABLE > console.width:
        for entry in entries:
            console.print(f"{entry.name}: {entry.metadata.description}", markup=False)
            console.print(f"  {'; '.join(_facts(entry))}", markup=False)
        return
    rows = [(entry.name, *_facts(entry), entry.metadata.description) for entry in entries]
    console.print(_table(rows, (*HEADINGS, "what it is")))


def _table(rows: Iterable[Sequence[str]], headings: Sequence[str]) -> Table:
    """Only domains and descriptions may be wrapped: a name that is cut cannot be copied."""
    table = Table(*(Column(heading, no_wrap=heading not in ("domain", "what it is")) for heading in headings))
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _facts(entry: ModelEntry) -> tuple[str, ...]:
    about = entry.metadata
    domain = f"{about.category} / {about.domain}".lower()
    return domain, ", ".join(about.tests), ", ".join(about.devices), ", ".join(about.presets), about.tier


def print_offers(entry: ModelEntry) -> None:
    """What there is to measure of a model, and what is not, with the reason that a run would record."""
    lines = [f"{entry.name}: {entry.metadata.description}"]
    for offer in offers(entry):
        sizes = ", ".join(f"{size} ({preset})" for preset, size in offer.batches.items()) or "the model's own"
        sizes += "".join(f", {size} ({PRESET} on {gpu})" for gpu, size in offer.gpu_batches.items())
        lines += [
            f"  {offer.test} on {offer.device}",
            f"    batch size: {sizes}, or any --batch-size",
            f"    backends: {', '.join(offer.backends) or 'none'}",
            f"    precisions: {', '.join(offer.precisions) or 'none'}",
            *(f"    not {what}: {reason}" for what, reason in offer.without),
        ]
    for line in lines:
        console.print(line, markup=False)


def print_suite(name: str, suite: Suite) -> None:
    """What `--suite` measures by this name."""
    threads = "all CPUs" if suite.threads is None else str(suite.threads)
    for line in (
        f"suite {name}: {suite.description}",
        f"  models: {', '.join(suite.models)}",
        f"  tests: {', '.join(suite.tests)}; preset: {suite.preset}; threads: {threads}",
        *([f"  tiers: {', '.join(suite.tiers)}"] if suite.tiers else []),
        *(f"  leaves out {rule.tests}: {rule.reason}" for rule in suite.skip),
    ):
        console.print(line, markup=False)
