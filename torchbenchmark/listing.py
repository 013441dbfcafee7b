"""The command `list`: what there is to measure."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from torchbenchmark.backends import BACKENDS
from torchbenchmark.experiment import PRECISIONS
from torchbenchmark.offers import offers
from torchbenchmark.registry import ModelEntry, Registry, Suite, load_suite, suite_names
from torchbenchmark.terminal import console


def list_models(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL...]", help="Tell of these models what there is to measure.")
    ] = None,
    models: Annotated[
        list[Path] | None, typer.Option("--models", help="A further folder of models (may be repeated).")
    ] = None,
) -> None:
    """List the models, the suites with what they measure, the backends and the precisions; or, of models that are
    named, what can be measured."""
    registry = Registry(tuple(models or ()))
    if names:
        for entry in [registry.model(name) for name in names]:
            print_offers(entry)
        return
    table = Table("model", "domain", "tests", "devices", "presets", "what it is")
    for entry in registry.models.values():
        about = entry.metadata
        table.add_row(
            entry.name,
            f"{about.category} / {about.domain}".lower(),
            ", ".join(about.tests),
            ", ".join(about.devices),
            ", ".join(about.presets),
            about.description,
        )
    console.print(table)
    for name in suite_names():
        print_suite(name, load_suite(name))
    for name, backend in BACKENDS.items():
        where = "" if len(backend.devices) > 1 else f" ({backend.devices[0]} only)"
        console.print(f"backend {name}{where}: {backend.meaning}", markup=False)
    console.print(f"precisions: {', '.join(PRECISIONS)}")
    console.print("what there is of a model, and its batch sizes: torchbench list MODEL", markup=False)


def print_offers(entry: ModelEntry) -> None:
    """What there is to measure of a model, and what is not, with the reason that a run would record."""
    lines = [f"{entry.name}: {entry.metadata.description}"]
    for offer in offers(entry):
        sizes = ", ".join(f"{size} ({preset})" for preset, size in offer.batches.items()) or "the model's own"
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
