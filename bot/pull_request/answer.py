"""What is believed of the results of a measuring job: numbers, of the tests that were asked for, and what they come to.

Which pull request, commits and tests they are of, the request says, which the planning job has handed on. The verdicts
are worked out here. Text is of whoever wrote the pull request, and is cut short and shown in code spans only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bot.benchmark_request import BenchmarkRequest
from bot.pull_request.artifact import BASE, HEAD, ArtifactRefused, files_of
from bot.pull_request.outcomes import MEASURED, PAIRS, PROFILES, BuildOutcome, MeasuringOutcome
from torchbenchmark.channels import CHANNELS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.paired.comparison import Comparison, Criterion
from torchbenchmark.paired.pairs_file import SIDES, Pair, Pairs, PairsHeader
from torchbenchmark.paired.sequential import judge
from torchbenchmark.profiles.attribution import Attribution
from torchbenchmark.profiles.difference import attribute_pairs
from torchbenchmark.records import Process, Status
from torchbenchmark.yaml_files import first_problem

LEVEL = 0.99  # of all intervals of a comment together: a comment is wrong once in a hundred
LONGEST_LINE = 4 * 2**20  # bytes; a pair with both profiles has some hundred KiB
MOST_SAMPLES, MOST_CHANNELS = 20_000, 60
SMALLEST_TIME, LARGEST_TIME = 1e-12, 1e9  # of a judged value, in its unit; 0 is none that has a logarithm
LARGEST_COUNT = 1e15
MOST_PROBLEMS = 100  # that are looked at to name the first
MOST_FACTS = 400
LONGEST_NAME = 500  # characters of a text of the header
PROFILED_PAIRS_AT_MOST = 100

_NO_NUMBERS = (BenchmarkError, ArithmeticError, AttributeError, TypeError, ValueError)
_Parsed = TypeVar("_Parsed", bound=BaseModel)


@dataclass(frozen=True)
class Answer:
    """What has come of a request. `refused`: why nothing of the results is believed; empty if it is."""

    base: BuildOutcome | None = None
    head: BuildOutcome | None = None
    measured: MeasuringOutcome | None = None
    header: PairsHeader | None = None
    comparison: Comparison | None = None
    attribution: Attribution | None = None
    refused: str = ""
    notes: tuple[str, ...] = field(default=())  # what was left out, and why


def read_answer(request: BenchmarkRequest, folder: Path, beyond: float | None = None) -> Answer:
    """What a folder of results comes to. Nothing that may stand in it raises."""
    try:
        files = files_of(folder)
        base, head = (_outcome_of(request, files, name) for name in (BASE, HEAD))
        measured = _measured_of(request, files)
        pairs = None if PAIRS not in files else read_requested_pairs(request, files[PAIRS])
        comparison = None if pairs is None else judged(pairs, beyond)
    except ArtifactRefused as error:
        return Answer(refused=one_line(error))
    attribution, notes = None, ()
    if request.profile and PROFILES in files:
        try:
            attribution = _attributed(read_requested_pairs(request, files[PROFILES], profiled=True))
        except ArtifactRefused as error:  # the numbers stand without it
            notes = (one_line(f"the profiles were refused: {error}"),)
    return Answer(base, head, measured, pairs.header if pairs else None, comparison, attribution, "", notes)


def judged(pairs: Pairs, beyond: float | None) -> Comparison:
    """The verdicts of pairs, worked out anew. Raises ArtifactRefused for numbers that come to none."""
    try:
        return judge(pairs, Criterion(level=LEVEL, beyond=beyond), None)[0]
    except _NO_NUMBERS as error:
        raise ArtifactRefused(f"the numbers come to no verdict: {one_line(error)}") from error


def _attributed(pairs: Pairs) -> Attribution:
    try:
        return attribute_pairs(pairs, LEVEL, None)
    except _NO_NUMBERS as error:
        raise ArtifactRefused(f"they come to no difference: {one_line(error)}") from error


def read_requested_pairs(request: BenchmarkRequest, content: bytes, *, profiled: bool = False) -> Pairs:
    """The pairs of a file, all of tests of the request. Raises ArtifactRefused for anything else."""
    name = PROFILES if profiled else PAIRS
    most = 1 + len(request.tests) * (PROFILED_PAIRS_AT_MOST if profiled else request.pairs)
    if content.count(b"\n") > most:  # before they are split, as millions of them take gigabytes
        raise ArtifactRefused(f"{name}: has more lines than pairs were asked for")
    lines = content.split(b"\n")
    if any(len(line) > LONGEST_LINE for line in lines):
        raise ArtifactRefused(f"{name}: has a line of over {LONGEST_LINE // 2**20} MiB")
    complete = lines[:-1]  # the last ends without a newline: torn by a kill, or nothing
    if not complete:
        raise ArtifactRefused(f"{name}: is empty")
    header = _parsed(f"{name}:1", complete[0], PairsHeader)
    _require_header(request, header, name, profiled)
    pairs: dict[tuple[str, int], Pair] = {}
    wanted = set(_tests_of(header))
    for number, line in enumerate(complete[1:], start=2):
        pair = _parsed(f"{name}:{number}", line, Pair)
        if pair.test not in wanted:
            raise ArtifactRefused(f"{name}:{number}: is of a test that was not asked for")
        if pair.index != 0 or pair.round > header.rounds:
            raise ArtifactRefused(f"{name}:{number}: is a pair that was not asked for")
        if (pair.test, pair.round) in pairs:
            raise ArtifactRefused(f"{name}:{number}: is a second pair of one test in one round")
        for side in SIDES:
            _require_process(f"{name}:{number}", getattr(pair, side))
        pairs[pair.test, pair.round] = _with_short_texts(pair)
    return Pairs(header, tuple(pairs.values()))


def _require_header(request: BenchmarkRequest, header: PairsHeader, name: str, profiled: bool) -> None:
    tests = [test.base for test in header.tests]
    if any(test.head != test.base for test in header.tests) or not set(tests) <= set(request.tests):
        raise ArtifactRefused(f"{name}: is of tests that were not asked for")
    if not profiled and set(tests) != set(request.tests):
        raise ArtifactRefused(f"{name}: is not of all tests that were asked for")
    if (header.device, header.profiled, header.processes) != (request.device, profiled, 1):
        raise ArtifactRefused(f"{name}: was measured in another way than was asked for")
    most = PROFILED_PAIRS_AT_MOST if profiled else request.pairs
    if not 1 <= header.rounds <= most or (not profiled and (header.rounds != most or not header.sequential)):
        raise ArtifactRefused(f"{name}: was measured with another number of pairs than was asked for")
    facts = [
        header.environment.facts,
        header.environment.observed,
        *(getattr(header, one).build.wheels for one in SIDES),
    ]
    if any(len(one) > MOST_FACTS for one in facts) or len(header.differing) > MOST_FACTS:
        raise ArtifactRefused(f"{name}: says more of the environment than there is to say")


def _require_process(where: str, process: Process | None) -> None:
    if process is None or process.status is not Status.OK:
        return
    if len(process.channels) > MOST_CHANNELS:
        raise ArtifactRefused(f"{where}: has more channels than there are")
    for name, channel in process.channels.items():
        kind = CHANNELS.get(name)
        if kind is None:
            raise ArtifactRefused(f"{where}: has a channel that there is not")
        if len(channel.samples) > MOST_SAMPLES:
            raise ArtifactRefused(f"{where}: has more samples than are taken")
        for value in (channel.median, channel.mean, channel.p20):
            fits = 0 <= value <= LARGEST_COUNT if kind.unit != "s" else _is_time(value)
            if not fits:
                raise ArtifactRefused(f"{where}: has a value that nothing can take")


def _is_time(value: float) -> bool:
    return value == 0 or SMALLEST_TIME <= value <= LARGEST_TIME


def _with_short_texts(pair: Pair) -> Pair:
    """Failures are told in the comment; what else stands there is dropped."""
    short = {
        side: process.model_copy(
            update={"reason": one_line(process.reason)[:300], "detail": "", "notes": (), "reasons": {}}
        )
        for side in SIDES
        if (process := getattr(pair, side)) is not None
    }
    return pair.model_copy(update=short)


def _tests_of(header: PairsHeader) -> list[str]:
    return [test.base for test in header.tests if not test.left_out]


def _outcome_of(request: BenchmarkRequest, files: Mapping[str, bytes], name: str) -> BuildOutcome | None:
    if name not in files:
        return None
    found = _parsed(name, files[name], BuildOutcome)
    wanted = ("base", request.base) if name == BASE else ("head", request.head)
    if (found.side, found.commit) != wanted:
        raise ArtifactRefused(f"{name}: is of another build than was asked for")
    return found


def _measured_of(request: BenchmarkRequest, files: Mapping[str, bytes]) -> MeasuringOutcome | None:
    if MEASURED not in files:
        return None
    found = _parsed(MEASURED, files[MEASURED], MeasuringOutcome)
    if found.key != request.key:
        raise ArtifactRefused(f"{MEASURED}: is of another request")
    return found


def _parsed(where: str, content: bytes, schema: type[_Parsed]) -> _Parsed:
    try:
        return schema.model_validate_json(content)
    except ValidationError as error:
        count = error.error_count()
        told = first_problem(error) if count <= MOST_PROBLEMS else f"{count:,} things in it are no answer"
        raise ArtifactRefused(f"{where}: {one_line(told)[:200]}") from None  # which holds all of them
    except (RecursionError, ValueError) as error:
        raise ArtifactRefused(f"{where}: is no JSON that is taken") from error
