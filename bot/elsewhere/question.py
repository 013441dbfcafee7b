"""The question of a night: all that the rules of confirming need to measure it again on a machine that has no store.

The job that may read the store leaves it in a file; the machine with the GPU answers it (answers.py). What the
night comes to is worked out again by who has asked, from the store and the answers: nothing of this file is read back.
"""

import gzip
import hashlib
import json
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from baselines.confirming.closing import AskedClosing
from baselines.confirming.exact import ExactChange
from baselines.confirming.seen import Seen
from baselines.confirming.state import ClassState, SeriesKey
from baselines.confirming.tonight import Named
from baselines.series import UtcTime
from baselines.store import Store
from baselines.stored_builds import StoredBuild, stored_build
from bot.confirming.confirmation import Looked
from bot.errors import BotError
from bot.whole_file import write_whole
from torchbenchmark.errors import SentinelError
from torchbenchmark.records import Build
from torchbenchmark.terminal import console
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
LARGEST_BYTES = 512 * 2**20  # unpacked; of 3,000 series in 150 nights it has some 20 MiB
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Values = tuple[tuple[float | None, ...], ...]  # (series, nights); None where there is none


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


class Candidate(_Schema):
    """A series that the limits have found."""

    test: str
    channel: str
    effect: float
    base: UtcTime
    recovered: UtcTime | None = None


class Question(_Schema):
    """See the head of this file; the fields are those of `Seen` and `Looked`."""

    kind: Literal["question"] = "question"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    digest: Digest  # by which an answer says which question it answers
    suite: str
    machine_class: str = Field(alias="class")
    run: str
    series: tuple[tuple[str, str], ...]
    nights: Annotated[tuple[UtcTime, ...], Field(min_length=1)]
    builds: tuple[str, ...]
    environments: tuple[str, ...]
    runners: tuple[str, ...]
    logs: Values
    variances: Values
    processes: int
    canary: str = ""
    named: tuple[Candidate, ...] = ()
    exact: tuple[ExactChange, ...] = ()
    state: ClassState
    closings: tuple[AskedClosing, ...] = ()
    closings_digest: Digest | None = None  # by which the answers of these say which question they answer
    measured: tuple[Build, ...]  # the builds of the nights, and where each lay when it was measured
    pins: tuple[StoredBuild, ...] = ()  # of those that can be installed again

    @model_validator(mode="after")
    def _in_shape(self) -> "Question":
        nights = len(self.nights)
        if not len(self.builds) == len(self.environments) == len(self.runners) == nights:
            raise ValueError("a night has one build, one environment and one runner")
        for values in (self.logs, self.variances):
            if len(values) != len(self.series) or any(len(row) != nights for row in values):
                raise ValueError("a series has one value a night")
        return self

    def seen(self) -> Seen:
        return Seen(
            series=tuple(SeriesKey(test, channel) for test, channel in self.series),
            nights=self.nights,
            builds=self.builds,
            environments=self.environments,
            runners=self.runners,
            logs=_array(self.logs, len(self.nights)),
            variances=_array(self.variances, len(self.nights)),
            processes=self.processes,
            canary=self.canary,
        )

    def candidates(self) -> list[Named]:
        return [Named(SeriesKey(one.test, one.channel), one.effect, one.base, one.recovered) for one in self.named]


def digest_of(looked: Looked) -> str:
    """Which question it is. Of what identifies it alone: two machines may differ in the last digit of a logarithm."""
    identity = {
        "night": looked.tonight.key,
        "state": [looked.state.nonce, None if looked.state.last_night is None else looked.state.last_night.isoformat()],
        "nights": [night.isoformat() for night in looked.seen.nights],
        "builds": looked.seen.builds,
        "series": [(key.test, key.channel) for key in looked.seen.series],
        "named": sorted(
            (one.key.test, one.key.channel, one.base.isoformat(), str(one.recovered)) for one in looked.named
        ),
        "exact": sorted((one.test, one.kind, one.channel, _bases(one)) for one in looked.exact),
        "canary": bool(looked.seen.canary),
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _bases(change: ExactChange) -> list[tuple[str, str]]:
    return [(night.isoformat(), build) for night, build in change.bases]


def closings_digest(looked: Looked, closings: Sequence[AskedClosing]) -> str:
    """Which question of closings it is. Of its own: who accepts a level meanwhile, which ends an alert, has changed
    nothing of what the night itself is asked."""
    identity = {
        "night": looked.tonight.key,
        "build": looked.tonight.build.id,
        "closings": [
            (
                one.alert,
                [(each.test, each.channel, each.base, each.of.isoformat(), each.beyond) for each in one.questions],
            )
            for one in closings
        ],
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def question_of(store: Store, looked: Looked, closings: Sequence[AskedClosing] = ()) -> Question:
    """The question of a night, with how its builds were pinned. A pin that cannot be read is told, and left out."""
    seen = looked.seen
    asked = {*looked.seen.builds, *(each.base for one in closings for each in one.questions)}
    measured = {
        (build.id, build.interpreter): build
        for build in (looked.tonight.build, *(night.build for night in looked.history))
        if build.id in asked
    }
    return Question(
        digest=digest_of(looked),
        suite=looked.tonight.suite,
        machine_class=looked.tonight.machine_class,
        run=looked.tonight.run,
        series=tuple((key.test, key.channel) for key in seen.series),
        nights=seen.nights,
        builds=seen.builds,
        environments=seen.environments,
        runners=seen.runners,
        logs=_plain(seen.logs),
        variances=_plain(seen.variances),
        processes=seen.processes,
        canary=seen.canary,
        named=tuple(
            Candidate(
                test=one.key.test, channel=one.key.channel, effect=one.effect, base=one.base, recovered=one.recovered
            )
            for one in looked.named
        ),
        exact=tuple(looked.exact),
        state=looked.state,
        closings=tuple(closings),
        closings_digest=closings_digest(looked, closings) if closings else None,
        measured=tuple(measured.values()),
        pins=tuple(_pins(store, sorted(asked))),
    )


def _pins(store: Store, builds: Sequence[str]) -> list[StoredBuild]:
    found = []
    for build in builds:
        try:
            pin = stored_build(store, build)
        except SentinelError as problem:
            console.print(f"build {build} cannot be installed again: {problem}", markup=False, style="yellow")
            continue
        if pin is not None:
            found.append(pin)
    return found


def write_question(question: Question, path: Path) -> None:
    write_whole(path, gzip.compress(question.model_dump_json(by_alias=True).encode(), mtime=0), make_folder=True)


def read_question(path: Path) -> Question:
    """The question in a file. Raises BotError naming the file and what is wrong in it."""
    try:
        with gzip.open(path) as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise BotError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise BotError(f"{path}: ends early or is damaged; get it anew") from error
    if len(content) > LARGEST_BYTES:
        raise BotError(f"{path}: larger than {LARGEST_BYTES // 2**20} MiB; that is no question of a night")
    try:
        return Question.model_validate_json(content)
    except ValidationError as error:
        raise BotError(f"{path}: {first_problem(error)}; expected what `detect` of the workflow has left") from error


def _plain(values: np.ndarray) -> Values:
    return tuple(tuple(value if math.isfinite(value) else None for value in row) for row in values.tolist())


def _array(values: Values, nights: int) -> np.ndarray:
    rows = [[math.nan if value is None else value for value in row] for row in values]
    return np.array(rows, dtype=np.float64).reshape(len(rows), nights)
