"""What every format of results is read into: mean seconds per iteration by test id, and where the numbers come from."""

import math
from dataclasses import dataclass
from pathlib import PurePath

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment

EXPECTED_FORMATS = (
    "records of torchbench (.jsonl, .jsonl.gz), the JSON of pytest-benchmark, "
    "or a reference YAML (<test>: {norm: seconds})"
)


@dataclass(frozen=True)
class Provenance:
    """Where times come from; a field that the file does not know is empty."""

    origin: str  # file name
    build: str = ""
    measured: str = ""  # ISO date
    machine_class: str = ""
    machine: str = ""  # what else of it is known: the driver, the kernel
    versions: str = ""  # of what the build brings, and of what was locked beside it
    command: str = ""  # by which it was measured
    head: tuple[str, ...] = ()  # of a reference: the lines that say all this of the results that it was made of


@dataclass(frozen=True)
class Measurements:
    """The content of one file of results."""

    latencies: dict[str, float]  # test id -> mean seconds per iteration
    provenance: Provenance


def file_name(source: str) -> str:
    return PurePath(source).name


def checked_test_id(name: object, where: str) -> str:
    """`name` if it is a test id in its one valid form."""
    if not isinstance(name, str):
        raise BenchmarkError(f"{where}: a test id must be text, found {_shown(name)}")
    try:
        Experiment.parse(name)
    except BenchmarkError as error:
        raise BenchmarkError(f"{where}: {error}") from error
    return name


def checked_seconds(value: object, where: str) -> float:
    """`value` as a time: a finite number above zero. Anything else would make a score of nonsense."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BenchmarkError(f"{where}: expected seconds as a number, found {_shown(value)}{_number_hint(value)}")
    try:
        seconds = float(value)
    except OverflowError:  # an integer of hundreds of digits
        seconds = math.inf
    if not math.isfinite(seconds) or seconds <= 0:
        raise BenchmarkError(
            f"{where}: {seconds:g} seconds is no time of an iteration; remove the entry or measure again"
        )
    return seconds


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _number_hint(value: object) -> str:
    """YAML 1.1 takes 1e-05 for text: it wants a dot in the mantissa."""
    if not isinstance(value, str):
        return ""
    try:
        float(value)
    except ValueError:
        return ""
    return " (text; write numbers without quotes and, in YAML, with a dot: 1.0e-05)"
