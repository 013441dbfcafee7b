"""Experiments and their ids in TorchBench's form, `test_eval[resnet50-cuda-eager]`; parsing and formatting are inverse.

No torch here: ids are read by the score, the baselines and the bot.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from torchbenchmark.errors import BenchmarkError

TESTS = ("train", "eval")
DEVICES = ("cpu", "cuda")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "amp_fp16", "amp_bf16")
PRESETS = ("full", "head", "tiny")
EVAL_MODE_TRAINING = "evalmode"
MAX_BATCH_SIZE = 10**9 - 1  # nine digits, as ids are read

_ID = re.compile(r"test_(?P<test>train|eval)\[(?P<fields>[^\[\]]+)\]")
_FIELD = re.compile(r"[A-Za-z0-9_.]+")
_BATCH = re.compile(r"bs([1-9][0-9]{0,8})")


def imports_dynamo(test: str, backend: str) -> bool:
    """Whether a process of such a test imports torch._dynamo, which takes as long as torch itself: an optimizer does,
    and whatever compiles."""
    return test == "train" or backend != "eager"


@dataclass(frozen=True)
class Experiment:
    """One test: a model, what is done with it, where and how.

    `batch_size` is None for the default of the model; `training_mode` is "" or "evalmode" (train with dropout off and
    running statistics fixed). Everything that is not the default is part of the id.
    """

    model: str
    test: str
    device: str
    backend: str = "eager"
    precision: str = "fp32"
    batch_size: int | None = None
    preset: str = "full"
    training_mode: str = ""

    def __post_init__(self) -> None:
        for name, value in (("model", self.model), ("backend", self.backend)):
            if not _FIELD.fullmatch(value):
                raise BenchmarkError(f"{name} {value!r}: use letters, digits, '_' and '.' only ('-' joins ids)")
        for name, value, allowed in (
            ("test", self.test, TESTS),
            ("device", self.device, DEVICES),
            ("precision", self.precision, PRECISIONS),
            ("preset", self.preset, PRESETS),
            ("training mode", self.training_mode, ("", EVAL_MODE_TRAINING)),
        ):
            if value not in allowed:
                raise BenchmarkError(f"{name} {value!r} is not one of {', '.join(filter(None, allowed))}")
        if self.batch_size is not None and not 1 <= self.batch_size <= MAX_BATCH_SIZE:
            raise BenchmarkError(f"batch size {self.batch_size}: must be from 1 to {MAX_BATCH_SIZE}")

    @property
    def id(self) -> str:
        fields = [self.model, self.device, self.backend]
        if self.precision != "fp32":
            fields.append(self.precision)
        if self.batch_size is not None:
            fields.append(f"bs{self.batch_size}")
        if self.preset != "full":
            fields.append(self.preset)
        if self.training_mode:
            fields.append(self.training_mode)
        return f"test_{self.test}[{'-'.join(fields)}]"

    @classmethod
    def parse(cls, test_id: str) -> "Experiment":
        """The experiment that `test_id` names. Raises BenchmarkError for anything `id` could not have written."""
        match = _ID.fullmatch(test_id)
        if match is None:
            raise BenchmarkError(f"{test_id!r} is not a test id; expected the form test_eval[model-device-backend]")
        model, *rest = match["fields"].split("-")
        if len(rest) < 2:
            raise BenchmarkError(f"{test_id!r} needs at least a model, a device and a backend, joined with '-'")
        device, backend, *suffixes = rest
        options: dict[str, str | int] = {}
        for suffix in suffixes:
            if batch := _BATCH.fullmatch(suffix):
                options["batch_size"] = int(batch[1])
            elif suffix in PRECISIONS:
                options["precision"] = suffix
            elif suffix in PRESETS:
                options["preset"] = suffix
            elif suffix == EVAL_MODE_TRAINING:
                options["training_mode"] = suffix
            else:
                raise BenchmarkError(f"{test_id!r}: {suffix!r} is no precision, batch size (bs8), preset or mode")
        experiment = cls(model=model, test=match["test"], device=device, backend=backend, **options)
        if experiment.id != test_id:
            raise BenchmarkError(f"{test_id!r} is not written in the one valid form; did you mean {experiment.id!r}?")
        return experiment


def matches_glob(test_id: str, pattern: str) -> bool:
    """Whether a glob matches a test id. The brackets of an id are meant as they stand, not as a set of characters."""
    return fnmatch.fnmatchcase(test_id, pattern.replace("[", "[[]"))


def grid(
    models: Iterable[str],
    tests: Iterable[str],
    devices: Iterable[str],
    *,
    preset: str = "full",
    backends: Iterable[str] = ("eager",),
    precisions: Iterable[str] = ("fp32",),
    batch_sizes: Iterable[int | None] = (None,),
) -> Iterator[Experiment]:
    """Every combination, in a stable order. A batch size of None is the model's own."""
    for model, device, backend, precision, batch_size, test in product(
        models, devices, backends, precisions, batch_sizes, tests
    ):
        yield Experiment(model, test, device, backend, precision, batch_size, preset)
