"""What builds the commits of a range and measures them against the good end: a measuring command of the user, or tests
of the suite by the pairs of `torchbench ab`."""

import dataclasses
import math
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

from bot.bisection.document import Made, SideRun, Visit
from bot.bisection.document import SideName as SideOfPair
from bot.bisection.provided import Provided
from bot.bisection.script import BaseCannotMeasure, CannotMeasure, run_script
from bot.errors import BotError
from torchbenchmark.builds.provide import ProvidedBuild
from torchbenchmark.channels import WARM_TIMES
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.measurement import (
    NothingToCompare,
    PairsReporter,
    PairsRequest,
    measure_pairs,
    plan_pairs,
    require_same_gpus,
)
from torchbenchmark.paired.noise_table import NoiseTable, find_noise_table
from torchbenchmark.paired.pair_series import log_ratios
from torchbenchmark.paired.pairs_file import Pairs, SideName, read_pairs
from torchbenchmark.paired.results import collapse, measured_tests, noise_table_of
from torchbenchmark.paired.sides import Side
from torchbenchmark.planning import RunRequest
from torchbenchmark.profiles.difference import Touched
from torchbenchmark.profiles.measuring import Profiled, profile_interpreters
from torchbenchmark.registry import Registry

REHEARSAL = 0  # the visit of the good end to itself


class Workplaces(Protocol):
    """Where a measuring command runs: checkouts of commits, or environments of versions and dates."""

    def build(self, name: str) -> Made: ...
    def is_there(self, name: str) -> bool: ...
    def source(self, name: str) -> Path: ...
    def variables(self, name: str) -> dict[str, str]: ...


Keep = Callable[[Visit], None]  # stores a visit that goes on


class Instrument(Protocol):
    """Builds and measures. Whoever asks stores what it gives, and asks nothing twice but what it has not stored."""

    def build(self, commit: str) -> Made: ...

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        """The visit with its values. What it has already is not measured again. Raises CannotMeasure if the commit
        gives no number, and BaseCannotMeasure if the good end does not."""


@dataclasses.dataclass(frozen=True)
class ScriptInstrument:
    """Runs of a measuring command in the checkouts of both commits, by turns, which goes first by coin."""

    worktrees: Workplaces
    command: str
    scratch: Path
    timeout_s: float
    higher_is_better: bool = False

    def build(self, commit: str) -> Made:
        return self.worktrees.build(commit)

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        require_checkouts(self.worktrees, {good, visit.commit})
        while len(visit.runs) < 2 * visit.n:
            side = self._next_side(visit)
            began = time.monotonic()
            commit = good if side == "good" else visit.commit
            try:
                value = run_script(
                    self.command,
                    self.worktrees.source(commit),
                    self.scratch,
                    self.worktrees.variables(commit),
                    self.timeout_s,
                )
            except CannotMeasure as error:
                if commit == good:
                    raise BaseCannotMeasure(str(error)) from error
                raise
            seconds = time.monotonic() - began
            run = SideRun(side=side, value=value, seconds=seconds)
            visit = visit.model_copy(update={"runs": (*visit.runs, run), "seconds": visit.seconds + seconds})
            keep(visit)
        sign = -1.0 if self.higher_is_better else 1.0
        pairs = [{run.side: run.value for run in visit.runs[at : at + 2]} for at in range(0, 2 * visit.n, 2)]
        ratios = tuple(sign * math.log(pair["commit"] / pair["good"]) for pair in pairs)
        return visit.model_copy(update={"values": ratios})

    @staticmethod
    def _next_side(visit: Visit) -> SideOfPair:
        if len(visit.runs) % 2:
            return "commit" if visit.runs[-1].side == "good" else "good"
        return "good" if secrets.randbelow(2) else "commit"


def require_checkouts(worktrees: Workplaces, commits: Collection[str]) -> None:
    """They are removed when a bisection ends, and it may go on."""
    for commit in commits:
        if not worktrees.is_there(commit) and not worktrees.build(commit).ok:
            raise BotError(f"{commit[:12]} was built before, and cannot be built again where its checkout is gone")


@dataclasses.dataclass(frozen=True)
class TestsInstrument:
    """Tests of the suite on the builds of a range. Of several tests a pair is their mean."""

    builds: Provided
    request: RunRequest
    channel: str
    folder: Path  # of the files of pairs
    reporter: PairsReporter
    on_class: Callable[[str], None] | None = None  # is told the class of this machine, and raises for a wrong one

    def build(self, commit: str) -> Made:
        return self.builds.made(commit)

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        began = time.monotonic()
        # As they were when they were verified: to ask them again would take two imports of torch a visit.
        interpreters = {"base": self.provided(good).holds, "head": self.provided(visit.commit).holds}
        # For times nothing need be counted, and importing what counts takes as long as importing torch.
        counting = self.channel not in WARM_TIMES
        run = dataclasses.replace(self.request, rounds=visit.n, processes=1, counting=counting)
        request = PairsRequest(run, Side(self._address(good)), Side(self._address(visit.commit)))
        require_same_gpus(request, interpreters)
        try:
            header = plan_pairs(request, interpreters, Registry(run.model_folders))
        except NothingToCompare as error:
            raise CannotMeasure(str(error)) from error
        if self.on_class is not None:
            self.on_class(header.machine_class)
        out = self.folder / f"{visit.number:03}-{visit.commit[:12]}.jsonl"
        measured = measure_pairs(request, header, interpreters, out, self.reporter, resume=True)
        values = self._values(measured)
        return visit.model_copy(
            update={"n": len(values), "seconds": visit.seconds + _since(began), "values": tuple(values)}
        )

    def profile(
        self, base: str, head: str, pairs: int, out: Path, traces: Path, touched: Touched | None = None
    ) -> Profiled:
        """Both commits profiled by turns, on the builds that are there. Raises BenchmarkError if that cannot be."""
        sides: dict[SideName, str] = {"base": base, "head": head}
        return profile_interpreters(
            dataclasses.replace(self.request, rounds=pairs, processes=1),
            {side: self._address(commit) for side, commit in sides.items()},
            {side: self.provided(commit).interpreter for side, commit in sides.items()},
            out,
            self.reporter,
            traces=traces,
            touched=touched,
        )

    def _values(self, measured: Pairs) -> list[float]:
        table = self._noise(measured.header.machine_class)
        by_test = []
        failures = []
        for test in measured_tests(measured):
            pairs = collapse(measured, test)
            if pairs.base_failure:
                raise BaseCannotMeasure(f"{test.base}: {pairs.base_failure}")
            ratios: list[Mapping[str, float]] = list(log_ratios(pairs, table))
            by_test.append([one[self.channel] for one in ratios if self.channel in one])
            failures += [f"{test.base}: {pairs.head_failure}"] if pairs.head_failure else []
        if failures or not min(map(len, by_test), default=0):
            raise CannotMeasure("; ".join(failures) or f"no pair gave {self.channel}")
        return [sum(values) / len(values) for values in zip(*by_test, strict=False)]

    def _noise(self, machine_class: str) -> NoiseTable | None:
        """How times follow the host: as the A/A study of this machine says or, without one, the pairs of the good end
        against itself. A test that does not follow the host probe would get the probe's noise beside its own."""
        table = find_noise_table(None, machine_class)
        rehearsals = sorted(self.folder.glob(f"{REHEARSAL:03}-*.jsonl"))
        if table is not None or not rehearsals:
            return table
        try:
            return noise_table_of(read_pairs(rehearsals[0]))
        except BenchmarkError:  # they tell of no noise
            return None

    def _address(self, commit: str) -> str:
        return self.builds.range.address(commit)

    def provided(self, commit: str) -> ProvidedBuild:
        return self.builds.build(commit)


def _since(began: float) -> float:
    return time.monotonic() - began
