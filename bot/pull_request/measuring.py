"""The measuring job of a `/benchmark` request: builds base and head, and measures them side by side.

Everything here runs isolated (.github/isolate), as it runs code of the pull request: nothing it leaves is believed.
"""

import dataclasses
import math
import time
from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from bot.benchmark_request import BenchmarkRequest
from bot.config import NightlyConfig
from bot.confirming.bench import TerminalRounds
from bot.elsewhere.plain_file import read_bounded
from bot.errors import BotError
from bot.pull_request.outcomes import BUILT, MEASURED, PAIRS, PROFILES, BuildOutcome, MeasuringOutcome, cut
from bot.run_request import run_request
from torchbenchmark.builds.build_errors import BuildFailed, BuildNotFound
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import provide
from torchbenchmark.errors import BenchmarkError, SentinelError
from torchbenchmark.experiment import Experiment
from torchbenchmark.foreign_text import one_line
from torchbenchmark.grid import DEFAULT_BATCH, GridOptions
from torchbenchmark.paired.comparison import Criterion
from torchbenchmark.paired.measurement import PairsRequest, inspect_sides, measure_pairs, plan_pairs
from torchbenchmark.paired.noise_table import find_noise_table
from torchbenchmark.paired.pairs_file import SIDES, Pairs, PairsHeader, SideName
from torchbenchmark.paired.sequential import judge
from torchbenchmark.paired.sides import Side
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import Registry, load_suite
from torchbenchmark.yaml_files import first_problem

BUILDS = "builds"  # below the folder of a side: its cache, with its interpreter
LARGEST_OUTCOME = 2**20
Outcome = TypeVar("Outcome", BuildOutcome, MeasuringOutcome)
MOST_PROFILED, PROFILED_PAIRS = 10, 6  # tests, in the order of the request; and pairs of each


def build_side(
    request: BenchmarkRequest, side: SideName, config: NightlyConfig, server: str, into: Path
) -> BuildOutcome:
    """Build the commit of a side below `into`, and leave there how that went. That it does not build is an answer."""
    began = time.monotonic()
    commit = request.base if side == "base" else request.head
    try:
        with provide(
            address_of(request, side, server), BuildCache.open(into / BUILDS), config.builds, subject=config.subject
        ) as build:
            made = BuildOutcome(side=side, commit=commit, state="built", interpreter=str(build.interpreter))
    except BuildFailed as error:
        lines = tuple(cut(one_line(line)) for line in error.lines[-20:])
        made = BuildOutcome(side=side, commit=commit, state="failed", reason=cut(one_line(error)), lines=lines)
    except BuildNotFound as error:
        made = BuildOutcome(side=side, commit=commit, state="not there", reason=cut(one_line(error)))
    except BenchmarkError as error:  # a full disk, a network that does not answer
        made = BuildOutcome(side=side, commit=commit, state="unavailable", reason=cut(one_line(error)))
    made = made.model_copy(update={"seconds": time.monotonic() - began})
    _write(into / BUILT, made)
    return made


def address_of(request: BenchmarkRequest, side: SideName, server: str) -> str:
    """Of the build of a side. A fork's head is asked of the fork: it is there that it was pushed."""
    repository = request.repository if side == "base" else request.head_repository
    return f"git:{server.rstrip('/')}/{repository}.git@{request.base if side == 'base' else request.head}"


def measure_part(
    request: BenchmarkRequest,
    config: NightlyConfig,
    server: str,
    sides: dict[SideName, Path],
    part: tuple[int, int],
    into: Path,
) -> MeasuringOutcome:
    """Measure one part of the rounds, going on with those before; a test that is decided leaves the rest."""
    number, parts = part
    before = _before(into, request)
    began = time.monotonic()
    last = math.ceil(request.pairs * number / parts)
    try:
        run, side_of, pythons = _sides(request, config, server, sides)
        pairs_request = PairsRequest(run, side_of["base"], side_of["head"])
        interpreters = inspect_sides(pairs_request, pythons, run.subject)
        header = plan_pairs(pairs_request, interpreters, Registry(run.model_folders))
        _require_all_tests(request, header)
        header = header.model_copy(update={"sequential": True})
        noise = find_noise_table(None, header.machine_class)
        criterion = Criterion(beyond=config.pull_requests.beyond)

        def decided(measured: Pairs) -> Collection[str]:
            if max((pair.round for pair in measured.pairs), default=0) >= last and number < parts:
                return [test.base for test in measured.header.tests]  # the rest is for the next part
            return judge(measured, criterion, noise)[1]

        seconds = max(0.0, 60 * request.budget_minutes * number / parts - before)
        measure_pairs(
            pairs_request,
            header,
            interpreters,
            into / PAIRS,
            TerminalRounds(),
            decided=decided,
            seconds=seconds,
            resume=True,
        )
        state, reason = "measured", ""
    except SentinelError as error:
        state, reason = "not measured", cut(one_line(error))
    outcome = MeasuringOutcome(
        key=request.key,
        part=number,
        parts=parts,
        state=state,
        reason=reason,
        seconds=before + time.monotonic() - began,
    )
    _write(into / MEASURED, outcome)
    return outcome


def profile_both(
    request: BenchmarkRequest, config: NightlyConfig, server: str, sides: dict[SideName, Path], into: Path
) -> str:
    """Profile both builds by turns; why not, if there is no profile."""
    try:
        run, side_of, pythons = _sides(request, config, server, sides)
        run = dataclasses.replace(run, selection=request.tests[:MOST_PROFILED], rounds=PROFILED_PAIRS)
        pairs_request = PairsRequest(run, side_of["base"], side_of["head"])
        interpreters = inspect_sides(pairs_request, pythons, run.subject)
        header = plan_pairs(pairs_request, interpreters, Registry(run.model_folders))
        measure_pairs(
            pairs_request,
            header.model_copy(update={"profiled": True}),
            interpreters,
            into / PROFILES,
            TerminalRounds(),
            seconds=60 * request.budget_minutes,
            resume=True,
        )
    except SentinelError as error:
        return one_line(error)
    return ""


def suite_of(request: BenchmarkRequest, config: NightlyConfig) -> str:
    """The suite as this machine finds it: the planning job has named its file as it lay there."""
    known = [one for one in (config.pull_requests.suite, config.suite) if one is not None]
    return next((one for one in known if Path(one).name == Path(request.suite).name), request.suite)


def run_of(request: BenchmarkRequest, config: NightlyConfig) -> RunRequest:
    """What is measured of either side: the tests of the request by their whole ids, of a grid that has them all."""
    tests = [Experiment.parse(test) for test in request.tests]
    return dataclasses.replace(
        run_request(config),
        suite=load_suite(suite_of(request, config)),
        device=request.device,
        selection=request.tests,
        options=GridOptions(
            tests=tuple(one.test for one in tests),
            backends=tuple(one.backend for one in tests),
            precisions=tuple(one.precision for one in tests),
            batch_sizes=tuple(DEFAULT_BATCH if one.batch_size is None else one.batch_size for one in tests),
        ),
        rounds=request.pairs,
        processes=1,
    )


def _sides(
    request: BenchmarkRequest, config: NightlyConfig, server: str, sides: dict[SideName, Path]
) -> tuple[RunRequest, dict[SideName, Side], dict[SideName, Path]]:
    pythons: dict[SideName, Path] = {}
    for name in SIDES:
        made = _read(sides[name] / BUILT, BuildOutcome)
        if made.state != "built":
            raise BotError(f"{name} was not built")
        pythons[name] = Path(made.interpreter)
    side_of = {name: Side(address_of(request, name, server)) for name in SIDES}
    return run_of(request, config), side_of, pythons


def _require_all_tests(request: BenchmarkRequest, header: PairsHeader) -> None:
    planned = {test.base for test in header.tests}
    if missing := [test for test in request.tests if test not in planned]:
        raise BotError(f"the suite has no {missing[0]} here; is the configuration that of the planning job?")


def _before(into: Path, request: BenchmarkRequest) -> float:
    """Seconds that parts before have taken."""
    if not (into / MEASURED).exists():
        return 0.0
    found = _read(into / MEASURED, MeasuringOutcome)
    return found.seconds if found.key == request.key else 0.0


def _read(path: Path, schema: type[Outcome]) -> Outcome:
    try:
        return schema.model_validate_json(read_bounded(path, LARGEST_OUTCOME))
    except ValidationError as error:
        raise BotError(f"{path.name}: {first_problem(error)}") from error


def _write(path: Path, outcome: BuildOutcome | MeasuringOutcome) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(outcome.model_dump_json(by_alias=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise BotError(f"{path}: cannot be written: {error.strerror}") from error
