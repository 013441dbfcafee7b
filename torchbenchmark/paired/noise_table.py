"""The noise of a machine as a table, from its A/A study: one build against itself, measured in pairs like any two.

Per test and channel: how much of the spread comes from which level (zygote, process, iteration), and the variance of a
pair. Per channel: the margin within which two zygotes of one build differ, and how a CPU-side time follows the probe.
"""

import json
import math
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from torchbenchmark.channels import CHANNELS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import unfit_text
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
MOST_DEGREES = 1000.0  # beyond, a variance is known for certain
LARGEST_SPREAD, SMALLEST_SPREAD = 100.0, 1e-9  # of logarithms; beyond, no machine is so noisy, or no clock so fine
LARGEST_SLOPE = 10.0  # on the probe; a study keeps its own far below

Share = Annotated[float, Field(ge=0, le=LARGEST_SPREAD, allow_inf_nan=False)]
_GPU_CLASS = re.compile(r"(cuda-.+)-t[0-9]+")  # as environment.machine_class names them
# Part of a file's name: ab looks for the table of a class by it.
MachineClass = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}$")]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class SeriesNoise(_Schema):
    """One channel of one test. Standard deviations are of logarithms: .01 is 1 %."""

    test: str
    channel: str
    pairs: int
    pair_sd: Share  # of ln(one side / the other), both of one build
    sd_zygote: Share | None = None
    sd_process: Share | None = None  # None: one process a zygote, and its noise is in that of the zygote
    sd_iteration: Share | None = None
    spread: Share  # coefficient of variation of the processes' locations, over everything


class ChannelNoise(_Schema):
    """One channel over all tests of the study."""

    channel: str
    tests: int
    pair_sd: Share  # typical: the root of the scale of the variances
    degrees: Annotated[float, Field(ge=0, le=MOST_DEGREES)]  # what it is worth beside tonight's pairs
    margin: Share  # 95 % of the differences between two zygotes of one build are smaller
    # Of ln(time) on ln(host_probe); None where it is no covariate.
    slope: Annotated[float, Field(ge=0, le=LARGEST_SLOPE)] | None = None


class NotExact(_Schema):
    """A count that should be the same every time, and was not."""

    test: str
    channel: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class KnownVariance:
    """What the table knows of the variance of a pair before it is measured."""

    variance: float
    degrees: float


class NoiseTable(_Schema):
    """The A/A table of one class."""

    kind: Literal["noise"] = "noise"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    machine_class: MachineClass = Field(alias="class")
    device: str
    made: AwareDatetime
    build: str
    environment: str  # fingerprint
    harness: str
    rounds: int
    processes: int
    series: tuple[SeriesNoise, ...]
    channels: tuple[ChannelNoise, ...]
    not_exact: tuple[NotExact, ...] = ()

    @property
    def title(self) -> str:
        tests = len({one.test for one in self.series})
        return f"A/A table of {self.machine_class}, {self.made:%Y-%m-%d}, {self.rounds} pairs of {tests} tests"

    def channel(self, name: str) -> ChannelNoise | None:
        return next((one for one in self.channels if one.channel == name), None)

    def slope(self, channel: str) -> float | None:
        known = self.channel(channel)
        return known.slope if known else None

    def spread(self, test: str, channel: str) -> float:
        """How far processes of one build lie apart, as a standard deviation of logarithms: of the test itself, or what
        is typical of the channel; 0 if the study did not have it."""
        own = next((one for one in self.series if (one.test, one.channel) == (test, channel)), None)
        known = self.channel(channel)
        return own.spread if own else known.pair_sd / math.sqrt(2) if known else 0.0

    def pair_variance(self, test: str, channel: str) -> KnownVariance | None:
        """Of the series itself, drawn towards the channel; of a test that was no canary that of the channel. None for a
        channel that the study did not have."""
        known = self.channel(channel)
        if known is None or known.pair_sd < SMALLEST_SPREAD:
            return None
        own = next((one for one in self.series if (one.test, one.channel) == (test, channel)), None)
        scale = known.pair_sd**2
        if own is None or own.pairs < 2:
            return KnownVariance(scale, known.degrees)
        degrees = own.pairs - 1
        drawn = (known.degrees * scale + degrees * own.pair_sd**2) / (known.degrees + degrees)
        return KnownVariance(drawn, known.degrees + degrees)

    def write(self, path: Path) -> None:
        """In one step: a reader sees the old table or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        scratch.write_text(self.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
        scratch.replace(path)


class GpuTable(NoiseTable):
    """What a table says of the GPU alone, whose own times and bytes do not follow the threads of the host."""

    @property
    def title(self) -> str:
        taken = ", ".join(one.channel for one in self.channels)
        return f"{super().title}; of other CPU threads, so that only what the GPU sets is taken from it: {taken}"


def read_noise_table(path: Path) -> NoiseTable:
    """The table in a file. Raises BenchmarkError naming file and key."""
    try:
        content = path.read_bytes()
        if (problem := unfit_text(json.loads(content), allowed="")) is not None:
            raise BenchmarkError(f"{path}: {problem!a} holds a control character; no A/A study writes that")
        return NoiseTable.model_validate_json(content)
    except OSError as error:
        raise BenchmarkError(
            f"{path}: cannot be read: {error.strerror}; make it with `torchbench doctor --aa`"
        ) from error
    except ValidationError as error:
        raise BenchmarkError(f"{path}: {first_problem(error)}; make it again with `torchbench doctor --aa`") from error
    except (ValueError, RecursionError) as error:
        raise BenchmarkError(f"{path}: not JSON ({error}); make it again with `torchbench doctor --aa`") from error


def default_path(machine_class: str) -> Path:
    """Where the table of a class lies on this machine."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "torchbench" / "noise" / f"{machine_class}.json"


def find_noise_table(path: Path | None, machine_class: str) -> NoiseTable | None:
    """The table that is named, else that of this class on this machine, else what one of the same GPUs beside other CPU
    threads says of the GPU, if there is one. One of another class is an error: its noise is not ours."""
    if path is None:
        path = default_path(machine_class)
        if not path.exists():
            return _of_the_same_gpus(path.parent, machine_class)
    table = read_noise_table(path)
    if table.machine_class != machine_class:
        raise BenchmarkError(
            f"{path}: is the A/A table of class {table.machine_class}, and this machine is {machine_class}"
        )
    return table


def _of_the_same_gpus(folder: Path, machine_class: str) -> GpuTable | None:
    """The newest of the tables in a folder whose class differs in its threads only, as far as it is of the GPU."""
    gpus = _gpus(machine_class)
    if gpus is None or not folder.is_dir():
        return None
    tables = []
    for path in sorted(folder.glob("*.json")):
        if _gpus(path.stem) != gpus:
            continue
        with suppress(BenchmarkError):  # nobody named it, and it is another class's
            table = read_noise_table(path)
            if table.machine_class == path.stem and any(_is_of_the_gpu(one.channel) for one in table.channels):
                tables.append(table)
    if not tables:
        return None
    newest = max(tables, key=lambda table: table.made)
    parts = {
        name: tuple(row for row in getattr(newest, name) if _is_of_the_gpu(row.channel))
        for name in ("series", "channels", "not_exact")
    }
    return GpuTable(**{**dict(newest), **parts})


def _gpus(machine_class: str) -> str | None:
    """Model and number of the GPUs of a class, without the threads of its host; None of a class of CPUs."""
    found = _GPU_CLASS.fullmatch(machine_class)
    return found[1] if found else None


def _is_of_the_gpu(channel: str) -> bool:
    return channel in CHANNELS and CHANNELS[channel].side == "gpu"
