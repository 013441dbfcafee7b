"""The answers to the question of a night: what a bench was asked on a machine with a GPU, and what it has measured.

They come from a machine that runs code which nobody has reviewed, so a file of answers is believed in nothing but its
numbers: it is bounded, every field is checked, and it answers only the very question that is asked, in its order. What
follows from them is worked out by who has asked (`RecordedBench`). A second machine leaves a file of its own, with what
it was asked after the answers of the first.
"""

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from baselines.confirming.bench import Bench, Decided, Ended, LogRatios, PairsWanted, Values
from bot.elsewhere.plain_file import read_bounded
from bot.elsewhere.question import Digest
from bot.errors import BotError
from bot.whole_file import write_whole
from torchbenchmark.foreign_text import one_line
from torchbenchmark.quantity import counted
from torchbenchmark.records import LARGEST_SAMPLE, Status
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
LARGEST_BYTES = 16 * 2**20  # a night of 1,000 tests that bridges them all has some 2 MiB
MOST_LINES = 2_000  # a build of each night of the window, and an ask for every few candidates
MOST_TESTS = 20_000
MOST_PROCESSES = 1_000  # and pairs, of one test in one ask
MOST_CHANNELS = 200
MOST_PROBLEMS = 100  # of one line that are looked at to name the first: to list a million takes minutes and gigabytes
LARGEST_LOG_RATIO = 50.0  # of what two samples can come to

Refusal = Literal["same machine", "other class"]
_REFUSALS: Mapping[Refusal, str] = {
    "same machine": "it was the machine that had confirmed, or may have been",
    "other class": "it was a machine of another class",
}

Name = Annotated[str, Field(min_length=1, max_length=300)]
Ratio = Annotated[float, Field(ge=-LARGEST_LOG_RATIO, le=LARGEST_LOG_RATIO)]
Value = Annotated[float, Field(ge=0, le=LARGEST_SAMPLE)]
Number = Annotated[int, Field(ge=0, le=MOST_PROCESSES)]
_Ratios = Annotated[dict[Name, Ratio], Field(max_length=MOST_CHANNELS)]
_Values = Annotated[
    dict[Name, Annotated[tuple[Value, ...], Field(max_length=MOST_PROCESSES)]], Field(max_length=MOST_CHANNELS)
]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False, strict=True)


class _Head(_Schema):
    kind: Literal["answers"] = "answers"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    question: Digest
    host: Annotated[str, Field(max_length=300)] = ""  # the machine, as the records of a night name it
    after: Digest | None = None  # of a second machine: the file of the first, which it goes on from
    refused: Refusal | None = None  # of a second machine: why it has measured nothing


class _Has(_Schema):
    """Whether a build can be measured."""

    kind: Literal["has"] = "has"
    build: Name
    answer: bool


class _Wanted(_Schema):
    test: Name
    base: Name
    head: Name


class _Pairs(_Schema):
    """See Bench.pairs."""

    kind: Literal["pairs"] = "pairs"
    wanted: Annotated[tuple[_Wanted, ...], Field(max_length=MOST_TESTS)]
    rounds: Number
    runner: Number
    answer: Annotated[
        tuple[Annotated[tuple[_Ratios, ...], Field(max_length=MOST_PROCESSES)], ...],
        Field(max_length=MOST_TESTS),
    ]


class _Again(_Schema):
    """See Bench.again."""

    kind: Literal["again"] = "again"
    tests: Annotated[tuple[Name, ...], Field(max_length=MOST_TESTS)]
    build: Name
    processes: Number
    answer: Annotated[dict[Name, _Values], Field(max_length=MOST_TESTS)]


class _Ended(_Schema):
    """See Ended. How a process says it failed is not carried: nothing is decided by it, and it is foreign text."""

    status: Status
    values: Annotated[dict[Name, Value], Field(max_length=MOST_CHANNELS)]


class _OneByOne(_Schema):
    """See Bench.one_by_one."""

    kind: Literal["one by one"] = "one by one"
    tests: Annotated[tuple[Name, ...], Field(max_length=MOST_TESTS)]
    build: Name
    processes: Number
    answer: Annotated[
        dict[Name, Annotated[tuple[_Ended, ...], Field(max_length=MOST_PROCESSES)]], Field(max_length=MOST_TESTS)
    ]


class _End(_Schema):
    """Last line: nothing more was asked."""

    kind: Literal["end"] = "end"


Asked = _Has | _Pairs | _Again | _OneByOne
_LINE: TypeAdapter[Asked | _End] = TypeAdapter(
    Annotated[_Has | _Pairs | _Again | _OneByOne | _End, Field(discriminator="kind")],
)
_Kind = TypeVar("_Kind", _Pairs, _Again, _OneByOne)


class AnswersRefused(BotError):
    """Answers that are none to the question."""


class RecordingBench:
    """Passes everything on to a bench, and keeps what it was asked and what it has answered. A number that no file of
    answers may hold is left out for both."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._builds: dict[str, bool] = {}
        self._asked: list[Asked] = []

    @property
    def runners(self) -> int:
        return self.bench.runners

    def has(self, build: str, runner: int = 0) -> bool:
        answer = self.bench.has(build, runner)
        if build not in self._builds:
            self._builds[build] = answer
            self._asked.append(_Has(build=build, answer=answer))
        return self._builds[build]

    def pairs(
        self, wanted: Sequence[PairsWanted], rounds: int, decided: Decided, runner: int = 0
    ) -> Sequence[Sequence[LogRatios]]:
        answer = self.bench.pairs(wanted, rounds, decided, runner)
        asked = tuple(_Wanted(**dataclasses.asdict(one)) for one in wanted)
        fit = tuple(
            tuple(
                {name: float(ratio) for name, ratio in pair.items() if abs(ratio) <= LARGEST_LOG_RATIO} for pair in one
            )
            for one in answer
        )
        self._asked.append(_Pairs(wanted=asked, rounds=rounds, runner=runner, answer=fit))
        return fit

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        answer = self.bench.again(tests, build, processes)
        fit = {
            test: {
                name: tuple(map(float, each))
                for name, each in values.items()
                if all(0 <= value <= LARGEST_SAMPLE for value in each)
            }
            for test, values in answer.items()
        }
        self._asked.append(_Again(tests=tuple(tests), build=build, processes=processes, answer=fit))
        return fit

    def one_by_one(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Sequence[Ended]]:
        answer = self.bench.one_by_one(tests, build, processes)
        fit = {
            test: tuple(
                _Ended(
                    status=one.status,
                    values={name: float(value) for name, value in one.values.items() if 0 <= value <= LARGEST_SAMPLE},
                )
                for one in each
            )
            for test, each in answer.items()
        }
        self._asked.append(_OneByOne(tests=tuple(tests), build=build, processes=processes, answer=fit))
        return _ends(fit)

    def write(self, path: Path, question: str, host: str = "", after: str | None = None) -> None:
        """All that was asked of this machine, when nothing more will be. `after`: see RecordedBench."""
        self._write(path, _Head(question=question, host=host, after=after))

    def write_refused(self, path: Path, question: str, host: str, after: str, refused: Refusal) -> None:
        """Why a second machine has measured nothing."""
        self._asked = []
        self._write(path, _Head(question=question, host=host, after=after, refused=refused))

    def _write(self, path: Path, head: _Head) -> None:
        lines = [head, *self._asked, _End()]
        write_whole(path, "".join(line.model_dump_json(by_alias=True) + "\n" for line in lines).encode())


class RecordedBench:
    """Answers as another bench has answered, each ask in its turn. Raises AnswersRefused for any other ask."""

    runners = 1

    def __init__(self, path: Path, question: str, after: str | None = None) -> None:
        """`path`: the file of answers, which may hold anything. `question`: the digest of what is asked. `after`: of a
        second machine, the digest of the answers that it has gone on from."""
        self.path = path
        content = read_bounded(path, LARGEST_BYTES, AnswersRefused)
        self.digest = hashlib.sha256(content).hexdigest()
        lines = _lines(path, content)
        head = _parse(path, 1, lines[0], TypeAdapter(_Head))
        if head.question != question:
            raise AnswersRefused(f"{path.name}: answers another question, of another night or of another state of it")
        if head.after != after:
            raise AnswersRefused(f"{path.name}: goes on from other answers than those that have come")
        if head.refused is not None:
            raise AnswersRefused(f"the second runner has measured nothing: {_REFUSALS[head.refused]}")
        self.host = head.host
        found = [_parse(path, number, line, _LINE) for number, line in enumerate(lines[1:], start=2)]
        if not found or not isinstance(found[-1], _End):
            raise AnswersRefused(f"{path.name}: ends early: the machine has not answered all that it was asked")
        self._builds: dict[str, bool] = {}
        self._left: list[_Pairs | _Again | _OneByOne] = []
        for one in found[:-1]:
            if isinstance(one, _End):
                raise AnswersRefused(f"{path.name}: goes on after its end")
            if isinstance(one, _Has):
                if one.build in self._builds:
                    raise AnswersRefused(f"{path.name}: says twice whether a build can be measured")
                self._builds[one.build] = one.answer
            else:
                self._left.append(one)
        self._left.reverse()
        self._unasked = set(self._builds)

    def has(self, build: str, runner: int = 0) -> bool:
        if build not in self._builds:
            raise AnswersRefused(f"{self.path.name}: does not say whether build {build} can be measured")
        self._unasked.discard(build)
        return self._builds[build]

    def pairs(
        self, wanted: Sequence[PairsWanted], rounds: int, decided: Decided, runner: int = 0
    ) -> Sequence[Sequence[LogRatios]]:
        one = self._next(_Pairs, f"pairs of {counted(len(wanted), 'test')}")
        asked = tuple(_Wanted(**dataclasses.asdict(each)) for each in wanted)
        if (one.wanted, one.rounds, one.runner) != (asked, rounds, runner):
            raise AnswersRefused(f"{self.path.name}: answers other pairs than those that are asked for")
        if len(one.answer) != len(wanted) or any(len(pairs) > rounds for pairs in one.answer):
            raise AnswersRefused(f"{self.path.name}: has more pairs, or of more tests, than were asked for")
        return one.answer

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        one = self._next(_Again, f"{counted(len(tests), 'test')} of build {build}")
        if (one.tests, one.build, one.processes) != (tuple(tests), build, processes):
            raise AnswersRefused(f"{self.path.name}: answers another ask than the tests of build {build}")
        if not set(one.answer) <= set(tests):
            raise AnswersRefused(f"{self.path.name}: has values of tests that were not asked for")
        if any(len(each) > processes for values in one.answer.values() for each in values.values()):
            raise AnswersRefused(f"{self.path.name}: has more processes than were asked for")
        return one.answer

    def one_by_one(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Sequence[Ended]]:
        one = self._next(_OneByOne, f"the ends of {counted(len(tests), 'test')} of build {build}")
        if (one.tests, one.build, one.processes) != (tuple(tests), build, processes):
            raise AnswersRefused(f"{self.path.name}: answers another ask than the ends of tests of build {build}")
        if set(one.answer) != set(tests) or any(len(each) != processes for each in one.answer.values()):
            raise AnswersRefused(f"{self.path.name}: has more or fewer ends than were asked for")
        return _ends(one.answer)

    def require_all_asked(self) -> None:
        """Raises AnswersRefused if there are answers that nobody asked for."""
        extra = len(self._left) + len(self._unasked)
        if extra:
            raise AnswersRefused(f"{self.path.name}: has {counted(extra, 'answer')} that nobody asked for")

    def _next(self, kind: type[_Kind], what: str) -> _Kind:
        if not self._left:
            raise AnswersRefused(f"{self.path.name}: has no answer for {what}")
        one = self._left.pop()
        if not isinstance(one, kind):
            raise AnswersRefused(f"{self.path.name}: answers something else where {what} are asked for")
        return one


def _ends(answer: Mapping[str, Sequence[_Ended]]) -> dict[str, tuple[Ended, ...]]:
    return {test: tuple(Ended(one.status, values=one.values) for one in each) for test, each in answer.items()}


def answers_in(folder: Path, name: str, *, artifact: str | None = None, job: str = "the confirming job") -> Path:
    """The file of answers of this name below a folder of artifacts, which a job was to leave: that in its own artifact
    (`answers-NAME`), whatever those of other nights hold, or else the only one.

    Raises AnswersRefused if there is none, or several.
    """
    wanted = f"{name}.jsonl"
    own = folder / (artifact or f"answers-{name}")
    if not own.is_symlink() and os.path.lexists(own / wanted):
        return own / wanted
    found = [Path(where) / wanted for where, _, files in os.walk(folder) if wanted in files]  # follows no link
    if not found:
        raise AnswersRefused(f"{job} has left no answers: it failed, was cancelled or ran out of time")
    if len(found) > 1:
        raise AnswersRefused(f"{wanted}: has come {len(found)} times, and nobody can say which is the right one")
    return found[0]


def _lines(path: Path, content: bytes) -> list[bytes]:
    lines = content.split(b"\n", MOST_LINES + 1)
    if len(lines) > MOST_LINES + 1:
        raise AnswersRefused(f"{path.name}: has more than {MOST_LINES} lines; no night asks so often")
    if lines[-1]:
        raise AnswersRefused(f"{path.name}: ends within a line")
    if len(lines) < 2:
        raise AnswersRefused(f"{path.name}: is empty")
    return lines[:-1]


_Parsed = TypeVar("_Parsed")


def _parse(path: Path, number: int, line: bytes, schema: TypeAdapter[_Parsed]) -> _Parsed:
    try:
        return schema.validate_json(line)
    except ValidationError as error:
        count = error.error_count()
        told = first_problem(error) if count <= MOST_PROBLEMS else f"{count:,} things in it are no answer"
        raise AnswersRefused(f"{path.name}:{number}: {one_line(told)[:300]}") from None  # which holds all of them
    except RecursionError as error:
        raise AnswersRefused(f"{path.name}:{number}: nested too deeply") from error
