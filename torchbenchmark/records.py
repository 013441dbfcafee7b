"""The record schema (version 1) and its JSONL file: a header line for the run, then one line per planned test.

docs/records.md describes every field. No torch here.
"""

import gzip
import io
import json
import os
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
MOST_SHARDS = 1000  # of a run; a matrix of GitHub Actions has 256 jobs at most
LARGEST_FILE_BYTES = 512 * 2**20  # unzipped; a night of a hundred models has a few MiB
LARGEST_SAMPLE = 1e18  # seconds, bytes or counts: sums of so many stay finite
YEARS = range(2000, 2200)  # of a start; a clock that says something else is not set


class Status(StrEnum):
    """How a planned test ended; every one ends in exactly one of these."""

    OK = "ok"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    OOM = "oom"
    TIMEOUT = "timeout"
    CRASH = "crash"
    ERROR = "error"
    ACCURACY_FAIL = "accuracy_fail"

    @property
    def failed(self) -> bool:
        """True where a healthy build would have given numbers: these are retried by --resume."""
        return self not in (Status.OK, Status.SKIPPED, Status.UNSUPPORTED)

    @property
    def expected(self) -> bool:
        """True if the test was not meant to run here: it counts neither as delivered nor as missing."""
        return self in (Status.SKIPPED, Status.UNSUPPORTED)


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


Sample = Annotated[float, Field(ge=-LARGEST_SAMPLE, le=LARGEST_SAMPLE)]


class Channel(_Schema):
    """The samples of one channel in one process, with their median, mean and 20th percentile."""

    unit: Annotated[str, Field(pattern=r"^[A-Za-z0-9/%]{1,16}$")]
    samples: Annotated[tuple[Sample, ...], Field(min_length=1)]
    median: Sample
    mean: Sample
    p20: Sample


class GpuState(_Schema):
    """What the GPU said of itself while a process was timed and profiled; None for what it does not tell."""

    readings: int
    clock_sm_mhz: tuple[float, float] | None = None  # smallest and largest
    clock_mem_mhz: tuple[float, float] | None = None
    temperature_c: float | None = None  # the highest
    power_w: float | None = None
    throttled: tuple[str, ...] = ()  # what held the clocks back at some moment


class Process(_Schema):
    """What one child process of a zygote measured."""

    round: int
    index: int  # of the processes of this test in this round, from 0
    zygote: str
    start_method: Literal["fork", "spawn"]
    status: Status
    reason: str = ""
    detail: str = ""  # end of the traceback or log of a failure
    started: AwareDatetime
    seconds: float  # from the request to the end of the process
    device_index: int | None = None  # of the GPU, among those that were visible to the run
    threads: int | None = None  # set in the child
    inner_loops: int | None = None  # iterations in one timed unit
    warmup_iterations: int | None = None
    steady: bool | None = None  # warm-up reached its criterion before its cap
    channels: dict[str, Channel] = {}
    gpu: GpuState | None = None  # on CUDA, where nvidia-smi answers
    notes: tuple[str, ...] = ()
    reasons: dict[str, tuple[str, ...]] = {}  # channel -> where its count comes from


class Attempt(_Schema):
    """An earlier end of this test in the same run, before --resume measured it again."""

    status: Status
    reason: str
    ended: AwareDatetime


class Workload(_Schema):
    version: str
    hash: str


class Record(_Schema):
    """What one test gave in one run."""

    kind: Literal["record"] = "record"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    run: str
    test: str
    workload: Workload
    batch_size: int | None = None  # as measured; None if the model never got that far
    status: Status
    reason: str = ""
    ended: AwareDatetime
    processes: tuple[Process, ...] = ()
    attempts: tuple[Attempt, ...] = ()

    def samples(self, channel: str) -> list[float]:
        """All samples of all processes that ended ok, in order of measuring."""
        return [
            sample
            for process in self.processes
            if process.status is Status.OK and channel in process.channels
            for sample in process.channels[channel].samples
        ]

    def process_channels(self, channel: str) -> list[Channel]:
        """The channel of each process that ended ok."""
        return [
            process.channels[channel]
            for process in self.processes
            if process.status is Status.OK and channel in process.channels
        ]


class PlannedTest(_Schema):
    test: str
    workload: Workload
    skip: str = ""  # the suite's reason to leave it out; empty for a test that is to be measured


class Build(_Schema):
    """An interpreter with the subject in it and all that its wheels bring. Never mixed with the environment."""

    id: str
    subject: str
    version: str
    commit: str | None = None
    python: str
    interpreter: str
    wheels: dict[str, str] = {}  # distribution -> version: the subject and what it brings
    libraries: dict[str, str] = {}  # CUDA runtime, cuDNN, MKL ... as the subject reports them
    startup_code: dict[str, str] = {}  # .pth files that run code at start -> hash


class Environment(_Schema):
    """What the machine and the harness bring."""

    fingerprint: str
    facts: dict[str, str]  # what the fingerprint is the hash of
    observed: dict[str, str] = {}  # told, but changing by nature: load, host name, frequencies


class Measuring(_Schema):
    """How was measured; a change here would change the numbers."""

    budget_s: float
    warmup_cap_s: float
    min_unit_s: float
    min_samples: int
    threads: int
    timeout_s: float
    memory_limit_bytes: int | None = None
    workers: Annotated[int, Field(ge=1)] = 1  # tests that are measured at a time
    gpus: Annotated[int, Field(ge=1)] | None = None  # that the workers have between them; None for a CPU run
    counting: bool = True  # channels `operators` and `flops`, which are counted last
    dynamo: bool = True  # the zygotes have imported torch._dynamo, whatever their tests need: it moves `cpu_memory`

    @property
    def settings(self) -> dict[str, float]:
        """What can move a number; limits that only end a test are not among it, nor are workers with a GPU each, nor
        what is done after all else, nor what follows from the suite."""
        settings = self.model_dump(exclude={"timeout_s", "memory_limit_bytes", "workers", "gpus", "counting", "dynamo"})
        if self.workers > (self.gpus or 1):
            settings["workers"] = self.workers
        return settings


class Shard(_Schema):
    """Which part of a run's suite a file holds."""

    index: Annotated[int, Field(ge=1)] = 1
    count: Annotated[int, Field(ge=1, le=MOST_SHARDS)] = 1

    @model_validator(mode="after")
    def _within_count(self) -> "Shard":
        if self.index > self.count:
            raise ValueError(f"shard {self.index} of {self.count}")
        return self

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def others(self) -> tuple[str, ...]:
        """The other shards of the run, as "i/n"."""
        return tuple(f"{index}/{self.count}" for index in range(1, self.count + 1) if index != self.index)


WHOLE = Shard()


class CanaryOf(_Schema):
    """Of which night a run of canaries tells: they were measured on a frozen build, on the machine of one of the
    night's shards, right before (`first`) or right after it (`last`)."""

    run: str
    shard: Shard = WHOLE
    turn: Literal["first", "last"]
    lock: str = ""  # fingerprint of all that the frozen build's interpreter holds; empty if there was none to measure

    @property
    def name(self) -> str:
        """The canary run's own name, the same however often the shard is measured."""
        shard = "" if self.shard.count == 1 else f"-{self.shard.index}-of-{self.shard.count}"
        return f"{self.run}-canary-{self.turn}{shard}"

    def __str__(self) -> str:
        shard = "" if self.shard.count == 1 else f", shard {self.shard}"
        return f"the {self.turn} canaries of run {self.run}{shard}"


class RunHeader(_Schema):
    """First line of a run's file."""

    kind: Literal["run"] = "run"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    run: str
    suite: str
    machine_class: str = Field(alias="class")
    device: str
    started: AwareDatetime
    seed: int
    rounds: int
    processes: int
    plan: Annotated[tuple[PlannedTest, ...], Field(min_length=1)]
    measuring: Measuring
    build: Build
    environment: Environment
    harness: str  # commit or version of the one copy of the harness that measured
    model_folders: tuple[str, ...] = ()  # folders of models beside the built-in ones
    selection: tuple[str, ...] = ()  # globs that narrowed the suite; empty for the whole suite
    shard: Shard = WHOLE
    elsewhere: tuple[PlannedTest, ...] = ()  # what the other shards of the run have to measure
    canary: CanaryOf | None = None  # of a run of canaries: the night that it tells of

    @field_validator("started")
    @classmethod
    def _in_our_time(cls, started: datetime) -> datetime:
        if started.year not in YEARS:
            raise ValueError(f"{started} is no time at which a run can have started")
        return started

    @model_validator(mode="after")
    def _each_test_once(self) -> "RunHeader":
        tests = [planned.test for planned in (*self.plan, *self.elsewhere)]
        if len(set(tests)) != len(tests):
            raise ValueError("a test stands twice in the plan")
        return self


@dataclass(frozen=True)
class Run:
    """A run as read from its file: the header and the records delivered so far, at most one per planned test."""

    header: RunHeader
    records: tuple[Record, ...]
    missing_shards: tuple[str, ...] = ()  # "i/n"; what they have to measure is in header.elsewhere

    @property
    def missing(self) -> list[str]:
        """Planned tests without a record: empty for a run that came to its end."""
        have = {record.test for record in self.records}
        return [planned.test for planned in self.header.plan if planned.test not in have]

    @property
    def coverage(self) -> float:
        """Share of the tests that were meant to run here and ended `ok`; 0 if none was meant to run."""
        expected = {record.test for record in self.records if record.status.expected}
        meant = len(self.header.plan) - len(expected)
        if self.missing_shards:
            meant += sum(not planned.skip for planned in self.header.elsewhere)
        return sum(record.status is Status.OK for record in self.records) / meant if meant else 0.0

    def counts(self) -> dict[Status, int]:
        counts = dict.fromkeys(Status, 0)
        for record in self.records:
            counts[record.status] += 1
        return counts


def to_line(item: BaseModel) -> str:
    """One JSON line, without a newline. NaN cannot be written: the schema refuses it before."""
    return json.dumps(item.model_dump(mode="json", by_alias=True), allow_nan=False, separators=(",", ":"))


def append_line(path: Path, item: BaseModel) -> None:
    """Append one line and force it to disk, so that a kill loses nothing that was told as done."""
    with _told_if_not_written(path), path.open("ab") as file:
        file.write(to_line(item).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def replace_lines(path: Path, items: Iterable[BaseModel]) -> None:
    """Replace the whole file in one step: a reader sees the old lines or the new, never a part."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _told_if_not_written(path):
        try:
            with scratch.open("wb") as file:
                for item in items:
                    file.write(to_line(item).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise


@contextmanager
def _told_if_not_written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BenchmarkError(
            f"{path}: cannot be written: {error.strerror}; what stands there stays, and --resume goes on with it"
        ) from error


def require_no_special_file(path: Path) -> None:
    """Raise BenchmarkError for a folder, a pipe or a device: a file of measurements is replaced in one step, and would
    take the place of /dev/null."""
    if path.exists() and not path.is_file():
        raise BenchmarkError(f"{path}: is no plain file; name another")


def encode_run(run: Run) -> bytes:
    """The run as the bytes of its JSONL file, gzipped reproducibly (no time stamp)."""
    lines = "".join(f"{to_line(item)}\n" for item in (run.header, *run.records))
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(lines.encode())
    return buffer.getvalue()


def read_run(path: Path) -> Run:
    """The run in a .jsonl or .jsonl.gz file. A line torn by a kill (the last, without its newline) is left out.

    Raises BenchmarkError with file and line for anything else that is not a run of schema 1.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from error
    return decode_run(content, str(path))


def decode_run(content: bytes, source: str) -> Run:
    """The run in the bytes of its file; `source` names them in errors."""
    header: RunHeader | None = None
    records: dict[str, Record] = {}
    planned: dict[str, PlannedTest] = {}
    for number, line in enumerate(complete_lines(content, source), start=1):
        where = f"{source}:{number}"
        item = _parse(line, where, RunHeader if header is None else Record)
        if isinstance(item, RunHeader):
            header = item
            planned = {test.test: test for test in item.plan}
            continue
        assert header is not None
        if item.run != header.run:
            raise BenchmarkError(f"{where}: a record of run {item.run}, not {header.run}; keep one run a file")
        if item.test not in planned:
            raise BenchmarkError(f"{where}: {item.test} is not in the plan of this run")
        if item.test in records:
            raise BenchmarkError(f"{where}: a second record of {item.test}; a test has one record a run")
        records[item.test] = item
    if header is None:
        raise BenchmarkError(f"{source}: empty; expected the records of a run (torchbench run --out ...)")
    return Run(header, tuple(records.values()), header.shard.others())


def complete_lines(content: bytes, source: str) -> list[bytes]:
    """The lines that end in a newline; what stands after the last newline was cut off by a kill."""
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = file.read(LARGEST_FILE_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise BenchmarkError(f"{source}: a damaged gzip file ({error}); fetch it again") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise BenchmarkError(f"{source}: larger than {LARGEST_FILE_BYTES // 2**20} MiB; that is not the file of a run")
    return content.split(b"\n")[:-1]


def _parse(line: bytes, where: str, schema: type[RunHeader] | type[Record]) -> RunHeader | Record:
    data = _json_object(line, where)
    if "kind" not in data or "schema" not in data:
        raise BenchmarkError(f"{where}: not a record of torchbench (no 'kind' and 'schema'); see docs/records.md")
    if data["schema"] != SCHEMA:
        raise BenchmarkError(
            f"{where}: record schema {data['schema']!r}, but this version reads schema {SCHEMA}; "
            "use the torchbench that wrote it, or measure again"
        )
    if data["kind"] == "pairs":
        raise BenchmarkError(f"{where}: holds pairs of `torchbench ab` and no run; `torchbench compare` takes it alone")
    wanted = schema.model_fields["kind"].default
    if data["kind"] != wanted:
        raise BenchmarkError(f"{where}: expected a line of kind {wanted!r}, found {data['kind']!r}")
    if (problem := unfit_text(data, allowed="\t" if schema is RunHeader else "\n\t")) is not None:
        raise BenchmarkError(f"{where}: {problem!a} holds a control character or half a character; no run writes that")
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        raise BenchmarkError(f"{where}: {first_problem(error)}") from error


def unfit_text(item: Any, allowed: str) -> str | None:
    """A text in JSON that no run of ours writes and that could break out of where it is shown (Unicode's categories C
    but for unassigned ones, which newer versions assign); None if there is none."""
    if isinstance(item, str):
        plain = item.isascii() and item.isprintable()
        unfit = not plain and any(
            unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in allowed for character in item
        )
        return item[:80] if unfit else None
    if isinstance(item, dict):
        item = [*item, *item.values()]
    if not isinstance(item, list) or (item and isinstance(item[0], float)):
        return None
    return next((found for part in item if (found := unfit_text(part, allowed)) is not None), None)


def _json_object(line: bytes, where: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BenchmarkError(f"{where}: not JSON ({error}); the file is damaged or of another program") from error
    if not isinstance(data, dict):
        raise BenchmarkError(f"{where}: expected a JSON object, found {type(data).__name__}")
    return data
