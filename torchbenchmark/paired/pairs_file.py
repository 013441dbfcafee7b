"""The file of a comparison: a header line, then one line per pair as it was measured, appended and forced to disk.

docs/ab.md describes every field. What was measured can be compared again, with another level or table, without a GPU.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.noise_table import MachineClass
from torchbenchmark.profiles.process_profile import ProfiledProcess
from torchbenchmark.records import (
    Build,
    Environment,
    Measuring,
    Process,
    Status,
    Workload,
    complete_lines,
    unfit_text,
)
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1

SideName = Literal["base", "head"]
SIDES: tuple[SideName, SideName] = ("base", "head")


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


class MeasuredSide(_Schema):
    """One side: what was asked for, and the build that it came to."""

    asked: str
    build: Build
    variables: dict[str, str] = {}


class PairedTest(_Schema):
    """A test as planned: its id on either side, which differ where an override makes them."""

    base: str
    head: str
    workload: Workload
    left_out: str = ""  # why it is not measured; empty if it is


class PairsHeader(_Schema):
    """First line of the file."""

    kind: Literal["pairs"] = "pairs"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    run: str
    suite: str
    machine_class: MachineClass = Field(alias="class")
    device: Literal["cpu", "cuda"]
    started: AwareDatetime
    seed: int
    rounds: int  # asked for; a sequential comparison may end earlier
    sequential: bool = False  # looked at meanwhile: then it must be judged so, or its level does not hold
    profiled: bool = False  # every process has a profile of its operators as well
    processes: int  # pairs of each test in a round, which share its zygotes
    base: MeasuredSide
    head: MeasuredSide
    tests: Annotated[tuple[PairedTest, ...], Field(min_length=1)]
    measuring: Measuring
    environment: Environment
    harness: str
    differing: tuple[str, ...] = ()  # what the harness brings in another version on either side

    @model_validator(mode="after")
    def _each_test_once(self) -> "PairsHeader":
        tests = [test.base for test in self.tests]
        if len(set(tests)) != len(tests):
            raise ValueError("a test stands twice in the plan")
        return self


class Pair(_Schema):
    """Two processes, measured one right after the other in the order of a fair coin."""

    kind: Literal["pair"] = "pair"
    test: str  # its id on the side of base
    round: Annotated[int, Field(ge=1)]
    index: Annotated[int, Field(ge=0)]  # of the pairs of this test in this round
    order: tuple[SideName, SideName]
    base: ProfiledProcess | Process | None = None  # None: it was not measured, as the other side was lost before
    head: ProfiledProcess | Process | None = None

    @model_validator(mode="after")
    def _both_sides(self) -> "Pair":
        if set(self.order) != set(SIDES):
            raise ValueError("the order of a pair names base and head once each")
        return self

    @property
    def ok(self) -> bool:
        return all(process is not None and process.status is Status.OK for process in (self.base, self.head))


@dataclass(frozen=True)
class Pairs:
    """A comparison as measured so far."""

    header: PairsHeader
    pairs: tuple[Pair, ...]

    def of_test(self, test: str) -> list[Pair]:
        return [pair for pair in self.pairs if pair.test == test]


def read_pairs(path: Path) -> Pairs:
    """The pairs in a file. A line torn by a kill (the last, without its newline) is left out.

    Raises BenchmarkError naming file and line for anything else that is not a file of pairs.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from error
    header: PairsHeader | None = None
    planned: set[str] = set()
    pairs: dict[tuple[str, int, int], Pair] = {}
    for number, line in enumerate(complete_lines(content, str(path)), start=1):
        item = _parse(line, f"{path}:{number}", PairsHeader if header is None else Pair)
        if isinstance(item, PairsHeader):
            header = item
            planned = {test.base for test in item.tests}
        elif item.test not in planned:
            raise BenchmarkError(f"{path}:{number}: {item.test} is not in the plan of this comparison")
        elif (turn := (item.test, item.round, item.index)) in pairs:
            raise BenchmarkError(
                f"{path}:{number}: a second pair {item.index} of {item.test} in round {item.round}; "
                "a pair counts once, so remove the line"
            )
        else:
            pairs[turn] = item
    if header is None:
        raise BenchmarkError(f"{path}: empty; expected the pairs of a comparison (torchbench ab --out ...)")
    return Pairs(header, tuple(pairs.values()))


def _parse(line: bytes, where: str, schema: type[PairsHeader] | type[Pair]) -> PairsHeader | Pair:
    try:
        content = json.loads(line)
        if schema is PairsHeader and isinstance(content, dict) and content.get("kind") == "run":
            raise BenchmarkError(
                f"{where}: holds a run of `torchbench run` and no pairs; two runs are compared, A and B"
            )
        if (problem := unfit_text(content, allowed="\t" if schema is PairsHeader else "\n\t")) is not None:
            raise BenchmarkError(f"{where}: {problem!a} holds a control character; no comparison writes that")
        return schema.model_validate_json(line)
    except ValidationError as error:
        raise BenchmarkError(f"{where}: {first_problem(error)}; expected a line that `torchbench ab` wrote") from error
    except (ValueError, RecursionError) as error:
        raise BenchmarkError(
            f"{where}: not JSON ({error}); expected a line that `torchbench ab` wrote into its --out"
        ) from error
