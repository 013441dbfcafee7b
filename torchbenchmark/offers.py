"""What there is to measure of a model: per kind of test and device the backends and precisions, and what there is not,
with the reason that a run would record. From rules and metadata alone, as `--dry-run` tells it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchbenchmark.backends import BACKENDS
from torchbenchmark.experiment import PRECISIONS, Experiment
from torchbenchmark.registry import ModelEntry


@dataclass(frozen=True)
class Offer:
    """Every precision goes with every backend but for what `without` names."""

    test: str
    device: str
    batches: dict[str, int]  # the default size by preset
    gpu_batches: dict[str, int]  # the default size at the preset `head` by the beginning of a GPU's name
    backends: tuple[str, ...]
    precisions: tuple[str, ...]
    without: tuple[tuple[str, str], ...]  # a backend, a precision, or `backend with precision`; and why


def offers(entry: ModelEntry) -> Iterator[Offer]:
    """Of each test and device of a model, at its first preset."""
    metadata = entry.metadata
    batches = default_batches((entry.folder / "__init__.py").read_bytes())
    for test in metadata.tests:
        for device in metadata.devices:
            yield _offer(entry, test, device, batches.get(test, {}))


def default_batches(source: bytes) -> dict[str, dict[str, int]]:
    """The default batch size by kind of test and preset, as a model's source states it: that is read and not run, which
    would need torch. One that is computed is missing."""
    found: dict[str, dict[str, int]] = {}
    module = ast.parse(source)
    named = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if not (isinstance(node, ast.Assign) and "PRESETS" in map(ast.unparse, node.targets)):
            continue
        for preset, made in zip(getattr(node.value, "keys", ()), getattr(node.value, "values", ()), strict=True):
            made = named.get(made.id) if isinstance(made, ast.Name) else made
            for keyword in getattr(made, "keywords", ()):
                test = {"train_batch": "train", "eval_batch": "eval"}.get(keyword.arg)
                if test and isinstance(preset, ast.Constant) and isinstance(keyword.value, ast.Constant):
                    found.setdefault(test, {})[preset.value] = keyword.value.value
    return found


def _offer(entry: ModelEntry, test: str, device: str, batches: dict[str, int]) -> Offer:
    def why_not(backend: str, precision: str) -> str | None:
        preset = entry.metadata.presets[0]
        return entry.unsupported_reason(
            Experiment(entry.name, test, device, backend=backend, precision=precision, preset=preset)
        )

    without: dict[str, str] = {}
    backends = [
        name for name in BACKENDS if not _all_refused(without, name, [why_not(name, one) for one in PRECISIONS])
    ]
    precisions = [
        name for name in PRECISIONS if not _all_refused(without, name, [why_not(one, name) for one in backends])
    ]
    for backend in backends:
        for precision in precisions:
            if (reason := why_not(backend, precision)) is not None:
                without[f"{backend} with {precision}"] = reason
    on_gpus = {name: sizes[test] for name, sizes in entry.metadata.gpu_batches.items() if test in sizes}
    return Offer(
        test,
        device,
        batches,
        on_gpus if device == "cuda" else {},
        tuple(backends),
        tuple(precisions),
        tuple(without.items()),
    )


def _all_refused(without: dict[str, str], name: str, reasons: list[str | None]) -> bool:
    """Whether nothing goes with `name`, which is noted with the reason."""
    refused = [reason for reason in reasons if reason is not None]
    if len(refused) < len(reasons):
        return False
    without[name] = max(refused, key=refused.count) if refused else "no backend runs"
    return True
