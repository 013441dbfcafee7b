"""Shards: one run measured on several machines, each a part of the suite's models, by one plan that all of them have.

The plan is made once, before the machines start: it gives the run its name, its start and its seed, and every model its
shard, so that what the shards deliver can be put together, and what is missing is known.
"""

import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment
from torchbenchmark.foreign_text import one_line
from torchbenchmark.records import MOST_SHARDS, Run, RunHeader, Shard, Status
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
SLACK = 0.05  # a shard may be planned so much longer than the mean before a model goes to another than it prefers
STEP = 1.05  # this room is rounded up to a power of it: a model that is added seldom changes it, and with it all others
_UNKNOWN_S = 10.0  # of a model that nothing is known of, where nothing is known of any other either

_SHARD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", re.ASCII)

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class RunPlan(BaseModel):
    """One run in shards: what all of them measure, how, and which models each has."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["plan"] = "plan"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")]  # it becomes a part of keys
    started: AwareDatetime
    seed: int
    suite: str  # by name, or the path of its YAML
    device: str
    rounds: Count
    processes: Count
    subject: str
    python: Path | None = None  # interpreter to measure, where no other is named; as `suite`, or a command on the PATH
    threads: Count | None = None
    budget_s: Positive | None = None
    timeout_s: Positive
    memory_limit_mib: Count | None = None
    model_folders: tuple[Path, ...] = ()  # as `suite`, from the folder that the commands of all shards are called in
    build: PinnedBuild | None = None  # what every shard measures; None for whatever interpreter it is given
    canary: CanarySettings | None = None  # what every shard measures first and last; its paths are as `suite`
    # Models of shard 1, 2, ...
    shards: Annotated[
        tuple[Annotated[tuple[str, ...], Field(min_length=1)], ...], Field(min_length=1, max_length=MOST_SHARDS)
    ]

    @model_validator(mode="after")
    def _each_model_once(self) -> "RunPlan":
        models = [model for shard in self.shards for model in shard]
        if len(set(models)) != len(models):
            raise ValueError("a model stands in two shards")
        return self

    def models_of(self, shard: Shard) -> tuple[str, ...]:
        """The models of a shard. Raises BenchmarkError if the plan is divided otherwise."""
        if shard.count != len(self.shards):
            raise BenchmarkError(
                f"--shard {shard}: the plan has {len(self.shards)} shards; name one, such as 1/{len(self.shards)}"
            )
        return self.shards[shard.index - 1]

    def require(self, header: RunHeader) -> None:
        """Raises BenchmarkError unless this is the header of one of the plan's shards, measured as planned."""
        for name, planned, found in (
            ("run", self.run, header.run),
            ("start", self.started, header.started),
            ("device", self.device, header.device),
            ("seed", self.seed, header.seed),
            ("rounds", self.rounds, header.rounds),
            ("processes", self.processes, header.processes),
            ("subject", self.subject, header.build.subject),
            ("number of shards", len(self.shards), header.shard.count),
            ("selection", (), header.selection),
        ):
            if planned != found:
                raise BenchmarkError(f"its {name} is {one_line(found)}, and {one_line(planned)} was planned")
        mine = set(self.models_of(header.shard))
        others = {model for models in self.shards for model in models} - mine
        for tests, models in ((header.plan, mine), (header.elsewhere, others)):
            if {Experiment.parse(one.test).model for one in tests} != models:
                raise BenchmarkError(f"shard {header.shard} has other models than were planned for it")
        if self.build is not None:
            self.build.require(header.build.wheels, header.build.interpreter)


def new_run_name(started: datetime) -> str:
    """A name that no other run has."""
    return f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def write_plan(plan: RunPlan, path: Path) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    content = json.dumps(plan.model_dump(mode="json", by_alias=True), indent=1) + "\n"
    try:
        scratch.write_text(content, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise BenchmarkError(f"{path}: cannot be written: {error.strerror}") from error


def read_plan(path: Path) -> RunPlan:
    """The plan in a file. Raises BenchmarkError naming the file and what is wrong in it."""
    try:
        return RunPlan.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BenchmarkError(f"{path}: {first_problem(error)}; make it with `torchbench plan`") from error


def parse_shard(text: str) -> Shard:
    """`i/n`, counted from 1."""
    match = _SHARD.fullmatch(text)
    if match is None or not int(match[1]) <= int(match[2]) <= MOST_SHARDS:
        raise BenchmarkError(
            f"--shard {text[:40]!r}: expected i/n with i from 1 to n, such as 1/2, and n at most {MOST_SHARDS}"
        )
    return Shard(index=int(match[1]), count=int(match[2]))


def durations(run: Run) -> dict[str, float]:
    """Seconds that each model of a run took: all processes together of its tests that ended ok."""
    found: dict[str, float] = {}
    for record in run.records:
        if record.status is not Status.OK:
            continue  # how long a crash or a timeout took says nothing of the next night
        model = Experiment.parse(record.test).model
        found[model] = found.get(model, 0.0) + sum(process.seconds for process in record.processes)
    return found


def divide(models: Mapping[str, float | None], count: int) -> tuple[tuple[str, ...], ...]:
    """The models of each of `count` shards, balanced by seconds (None or 0: not known, taken for the median).

    Every model has shards that it prefers, by a hash of its name alone, and goes to the first that still has room for
    it. So a model that is added or removed moves few others, and a shard is at most a tenth, or one model, longer than
    the mean.
    """
    if not 1 <= count <= len(models):
        raise BenchmarkError(f"--shards {count}: the suite has {len(models)} models, and each shard needs at least one")
    known = sorted(filter(None, models.values()))
    typical = known[len(known) // 2] if known else _UNKNOWN_S
    weights = {model: seconds or typical for model, seconds in models.items()}
    room = STEP ** math.ceil(math.log((1 + SLACK) * sum(weights.values()) / count, STEP))
    loads = [0.0] * count
    shards: list[list[str]] = [[] for _ in range(count)]
    for model in sorted(weights, key=lambda model: (-weights[model], model)):
        preferred = sorted(range(count), key=lambda index: hashlib.sha256(f"{model}/{index}".encode()).digest())
        fitting = [index for index in preferred if loads[index] + weights[model] <= room]
        chosen = fitting[0] if fitting else min(preferred, key=loads.__getitem__)
        loads[chosen] += weights[model]
        shards[chosen].append(model)
    while not all(shards):
        fullest = max((index for index in range(count) if len(shards[index]) > 1), key=loads.__getitem__)
        shards[shards.index([])].append(shards[fullest].pop())  # the lightest that it has
    return tuple(tuple(sorted(shard)) for shard in shards)
