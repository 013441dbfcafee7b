"""Models and suites, known from their metadata alone: nothing here imports torch or a model.

A model is a folder with `__init__.py` (class Model) and `metadata.yaml`. Further folders of models can be named, so a
user's own models need no change to this package.
"""

import difflib
import fnmatch
import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from torchbenchmark.backends import BACKENDS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import MAX_BATCH_SIZE, Experiment, grid, matches_glob
from torchbenchmark.gpu_batches import batch_on_gpu, class_slug
from torchbenchmark.requirements import parse_requirement
from torchbenchmark.rules import ruled_out
from torchbenchmark.source_hash import source_hash
from torchbenchmark.yaml_files import read_yaml

PACKAGE = Path(__file__).parent
BUILT_IN_MODELS = PACKAGE / "models"
BUILT_IN_SUITES = PACKAGE / "suites"

Device = Literal["cpu", "cuda"]
Test = Literal["train", "eval"]
Preset = Literal["full", "head", "tiny"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "amp_fp16", "amp_bf16"]
Tier = Literal["short", "medium", "long"]  # by how long a process takes at the size `full` on one GPU
BatchSize = Literal["default"] | Annotated[int, Field(strict=True, ge=1, le=MAX_BATCH_SIZE)]  # "default": the model's


def _not_blank(text: str) -> str:
    if text and not text.strip():
        raise ValueError("expected a text, found only blanks")
    return text


NonEmpty = Annotated[str, Field(min_length=1), AfterValidator(_not_blank)]


def _without_repetition(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} stands twice")
    return values


_SomeOnce = (Field(min_length=1), AfterValidator(_without_repetition))  # of a tuple
Tests = Annotated[tuple[Test, ...], *_SomeOnce]


def _known_backend(name: str) -> str:
    if name not in BACKENDS:
        raise ValueError(f"{name!r} is no backend (there are: {', '.join(BACKENDS)})")
    return name


Backend = Annotated[str, AfterValidator(_known_backend)]


def _checkable(text: str) -> str:
    parse_requirement(text)
    return text


Requires = Annotated[str, AfterValidator(_checkable)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NotImplementedRule(_Strict):
    """Tests a model cannot run, and why. An absent field matches everything."""

    test: Test | None = None
    device: Device | None = None
    preset: Preset | None = None
    backend: Backend | None = None
    precision: Precision | None = None
    reason: NonEmpty

    def matches(self, experiment: Experiment) -> bool:
        return all(
            wanted is None or wanted == actual
            for wanted, actual in (
                (self.test, experiment.test),
                (self.device, experiment.device),
                (self.preset, experiment.preset),
                (self.backend, experiment.backend),
                (self.precision, experiment.precision),
            )
        )


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):  # which pydantic takes for 1 or 0
        raise ValueError(f"expected a number, found {str(value).lower()}")
    return value


NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_no_truth_value)]


class Tolerance(_Strict):
    """How far outputs of the same workload may lie apart: `|a - b| <= atol + rtol * |b|`."""

    rtol: NotNegative = 1e-3
    atol: NotNegative = 1e-5


def _of_distinct_gpus(batches: dict[str, Any]) -> dict[str, Any]:
    names: dict[str, str] = {}
    for name in batches:
        slug = class_slug(name)
        if not slug:
            raise ValueError(f"{name!r} is the name of no GPU; write it as nvidia-smi does")
        if slug in names:
            raise ValueError(f"{names[slug]!r} and {name!r} are the same GPU; leave one out")
        names[slug] = name
    return batches


GpuBatches = Annotated[
    dict[NonEmpty, dict[Test, Annotated[int, Field(strict=True, ge=1, le=MAX_BATCH_SIZE)]]],
    AfterValidator(_of_distinct_gpus),
]


class Metadata(_Strict):
    """The content of a model's metadata.yaml."""

    description: NonEmpty
    category: NonEmpty  # of the published V1 taxonomy: the score weights by it
    domain: NonEmpty
    workload_version: NonEmpty
    tests: Tests = ("train", "eval")
    devices: Annotated[tuple[Device, ...], *_SomeOnce] = ("cpu", "cuda")
    presets: Annotated[tuple[Preset, ...], *_SomeOnce] = ("full", "tiny")
    precisions: Annotated[tuple[Precision, ...], *_SomeOnce] = get_args(Precision)
    tier: Tier = "short"
    gpu_batches: GpuBatches = {}
    requires: tuple[Requires, ...] = ()  # distributions beside torch that the build's interpreter must have
    deterministic: bool = True
    tolerance: Tolerance = Tolerance()  # of the outputs of an inference, between devices and runs
    draws: dict[Test, tuple[NonEmpty, ...]] = {}  # the random operators that belong to the workload
    waits_for_device: dict[Test, NonEmpty] = {}  # why an iteration must read a value back
    loss_need_not_fall: NonEmpty | None = None  # why twenty steps on the same data may leave the loss where it was
    untrained: dict[NonEmpty, NonEmpty] = {}  # glob over names of parameters -> why a step does not change them
    not_implemented: tuple[NotImplementedRule, ...] = ()
    differs_from_v1: tuple[str, ...] = ()  # where the workload was mended, and how


class SkipRule(_Strict):
    tests: NonEmpty  # a glob over test ids
    reason: NonEmpty


class Suite(_Strict):
    """A suite's YAML: the grid of models, tests, backends, precisions and batch sizes, and what is left out of it with
    a reason."""

    name: NonEmpty
    description: NonEmpty
    models: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_without_repetition)]
    tests: Tests = ("train", "eval")
    preset: Preset = "full"
    backends: Annotated[tuple[Backend, ...], Field(min_length=1), AfterValidator(_without_repetition)] = ("eager",)
    precisions: Annotated[tuple[Precision, ...], Field(min_length=1), AfterValidator(_without_repetition)] = ("fp32",)
    batch_sizes: Annotated[tuple[BatchSize, ...], Field(min_length=1), AfterValidator(_without_repetition)] = (
        "default",
    )
    tiers: dict[NonEmpty, Annotated[tuple[NonEmpty, ...], Field(min_length=1)]] = {}  # tier -> globs, for --tier
    threads: Annotated[int, Field(ge=1)] | None = None  # CPU threads of its tests, unless the user says otherwise
    skip: tuple[SkipRule, ...] = ()

    def skip_reason(self, experiment: Experiment) -> str | None:
        for rule in self.skip:
            if matches_glob(experiment.id, rule.tests):
                return rule.reason
        return None


class ModelEntry:
    """One model folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    @cached_property
    def metadata(self) -> Metadata:
        return read_yaml(self.folder / "metadata.yaml", Metadata)

    @cached_property
    def source_hash(self) -> str:
        return source_hash(self.folder)

    def batch_size(self, experiment: Experiment, machine_class: str | None) -> int | None:
        """What the model is told of its batch size on a machine of that class; None for the preset's own."""
        return experiment.batch_size or batch_on_gpu(self.metadata.gpu_batches, experiment, machine_class)

    def workload(self, experiment: Experiment, machine_class: str | None = None) -> tuple[str, str]:
        """Version string and hash of what this experiment does there (DESIGN: a change starts a new segment)."""
        content = f"{self.metadata.workload_version}|{self.source_hash}|{experiment.id}"
        if (experiment.device, experiment.precision) == ("cuda", "fp32"):
            content += "|ieee"  # at first it was torch's default, under which cuDNN's convolutions round to TF32
        if (size := batch_on_gpu(self.metadata.gpu_batches, experiment, machine_class)) is not None:
            content += f"|batch {size}"
        digest = hashlib.sha256(content.encode())
        return self.metadata.workload_version, digest.hexdigest()[:12]

    def unsupported_reason(self, experiment: Experiment) -> str | None:
        """Why this model cannot run `experiment`, or None if it can, as far as rules and metadata know."""
        metadata = self.metadata
        if (reason := ruled_out(experiment)) is not None:
            return reason
        for wanted, offered, what in (
            (experiment.test, metadata.tests, "test"),
            (experiment.device, metadata.devices, "device"),
            (experiment.preset, metadata.presets, "preset"),
            (experiment.precision, metadata.precisions, "precision"),
        ):
            if wanted not in offered:
                return f"{self.name} has no {what} {wanted!r} (it offers {', '.join(offered)})"
        for rule in metadata.not_implemented:
            if rule.matches(experiment):
                return rule.reason
        return None


class Registry:
    """The models of this package and of further folders; a later folder may not redefine a name."""

    def __init__(self, extra_folders: Sequence[Path] = ()) -> None:
        self.models: dict[str, ModelEntry] = {}
        for root in (BUILT_IN_MODELS, *(folder.resolve() for folder in extra_folders)):
            if not root.is_dir():
                raise BenchmarkError(f"{root}: no such folder of models")
            for folder in sorted(root.iterdir()):
                if not (folder / "__init__.py").is_file():
                    continue
                if not (folder / "metadata.yaml").is_file():
                    raise BenchmarkError(f"{folder}: a model needs a metadata.yaml beside its __init__.py")
                if folder.name in self.models:
                    raise BenchmarkError(f"{folder}: a model of the name {folder.name} exists already; rename it")
                self.models[folder.name] = ModelEntry(folder)

    def model(self, name: str) -> ModelEntry:
        if name not in self.models:
            _unknown("model", name, self.models, _OF_ONES_OWN)
        return self.models[name]

    def experiments(self, suite: Suite, devices: Iterable[str]) -> list[Experiment]:
        """The whole plan of `suite` on `devices`, also what is skipped or unsupported: each gets a record."""
        for name in suite.models:
            if name not in self.models:
                _unknown(f"model in suite {suite.name}:", name, self.models, _OF_ONES_OWN)
        return list(
            grid(
                suite.models,
                suite.tests,
                devices,
                preset=suite.preset,
                backends=suite.backends,
                precisions=suite.precisions,
                batch_sizes=[None if size == "default" else size for size in suite.batch_sizes],
            )
        )


def load_suite(name_or_path: str) -> Suite:
    """A suite of this package by name, or any suite by the path of its YAML."""
    if name_or_path.endswith((".yaml", ".yml")):
        return read_yaml(Path(name_or_path), Suite)
    path = BUILT_IN_SUITES / f"{name_or_path}.yaml"
    if not path.is_file():
        _unknown("suite", name_or_path, suite_names())
    return read_yaml(path, Suite)


def suite_names() -> list[str]:
    return sorted(path.stem for path in BUILT_IN_SUITES.glob("*.yaml"))


def select(experiments: Iterable[Experiment], patterns: Sequence[str]) -> list[Experiment]:
    """Those whose id or model matches any of the globs; all of them without a pattern. No match is an error."""
    experiments = list(experiments)
    if not patterns:
        return experiments
    chosen = set()
    for pattern in patterns:
        hits = {experiment for experiment in experiments if matches(experiment, pattern)}
        if not hits:
            known = [experiment.id for experiment in experiments] + [experiment.model for experiment in experiments]
            _unknown("test", pattern, known)
        chosen |= hits
    return [experiment for experiment in experiments if experiment in chosen]


def matches(experiment: Experiment, pattern: str) -> bool:
    """Whether a glob matches the id or the model of an experiment."""
    return matches_glob(experiment.id, pattern) or fnmatch.fnmatchcase(experiment.model, pattern)


_OF_ONES_OWN = (
    "`torchbench list` has those that are built in; --models DIR, or the key `models`, adds a folder of others"
)


def _unknown(what: str, name: str, known: Iterable[str], where: str = "") -> NoReturn:
    """Raise with the names that are close or, where none is, with `where` they are, or else with all of them."""
    known = sorted(set(known))
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else where or f"known: {', '.join(known)}"
    raise BenchmarkError(f"unknown {what} {name!r}; {hint}")
