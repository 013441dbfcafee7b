"""A simulated fleet through the real flow, night by night: what would have been filed, and what it would have cost.

The fleet is any class with the methods of `Fleet`; of one that knows the truth nothing but these is asked.
"""

import importlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from baselines.confirming.bench import Decided, Ended, LogRatios, PairsWanted, Values
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.seen import Seen, SeriesKey
from baselines.confirming.state import ClassState
from baselines.confirming.tonight import Outcome
from baselines.errors import BaselineError
from baselines.screening import WINDOW
from baselines.screening.noise import FloatArray
from torchbenchmark.records import Status
from torchbenchmark.yaml_files import load_yaml

CHANNEL = "value"
FIRST_NIGHT = datetime(2000, 1, 1, tzinfo=UTC)
FIRST_ZYGOTE = 1000  # of our own choice; those below are the nightly's
REPLICATES = 3
CANARY_LIMIT = 4.0
_CANARY_CLIP = 3.5
_CANARY_NIGHTS = 7
_ASKED = ("tests", "n_nights", "n_runners", "runner", "environment", "night_values", "measure", "canary")


class Fleet(Protocol):
    """What a fleet answers. Times are seconds; nights, builds, runners and tests are numbers from 0 on."""

    tests: Sequence[str]
    n_nights: int
    n_runners: int

    def runner(self, night: int) -> int: ...
    def environment(self, night: int, runner: int) -> str: ...
    def night_values(self, night: int, runner: int) -> FloatArray: ...
    def measure(
        self, test: int, build: int, night: int, runner: int, zygote: int, process: int, slot: int
    ) -> float: ...
    def canary(self, night: int, runner: int) -> FloatArray: ...


def open_fleet(named: str, scenario: str, seed: int) -> Fleet:
    """The fleet of `MODULE:CLASS` in the scenario of `FILE:NAME`. Raises BaselineError naming what is wrong."""
    module, _, class_name = named.rpartition(":")
    path, _, name = scenario.rpartition(":")
    if not module or not path:
        raise BaselineError(f"--fleet {named} --scenario {scenario}: write MODULE:CLASS and FILE:NAME")
    try:
        made = getattr(importlib.import_module(module), class_name)
    except Exception as error:  # whatever a foreign module does while it is imported
        raise BaselineError(
            f"--fleet {named}: {_brief(error)}; the module must be importable (its folder on PYTHONPATH)"
        ) from error
    scenarios = load_yaml(Path(path), BaselineError)
    if not isinstance(scenarios, dict) or name not in scenarios:
        told = ", ".join(map(str, scenarios)) if isinstance(scenarios, dict) else "none"
        raise BaselineError(f"{path}: has no scenario {name}; it has {told}")
    try:
        fleet: Fleet = made(scenarios[name], seed)
    except Exception as error:
        raise BaselineError(
            f"--fleet {named} --scenario {scenario}: the fleet could not be made: {_brief(error)}"
        ) from error
    lacking = [method for method in _ASKED if not hasattr(fleet, method)]
    if lacking:
        raise BaselineError(f"--fleet {named}: has no {', '.join(lacking)}")
    return fleet


def _brief(error: Exception) -> str:
    """In one line, with its kind: the message alone may say nothing (KeyError: 'tests')."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


class FleetBench:
    """The machines of a fleet in one night."""

    def __init__(self, fleet: Fleet, night: int, seed: int) -> None:
        self._fleet, self._night = fleet, night
        self._index = {test: number for number, test in enumerate(fleet.tests)}
        self._coin = random.Random(f"{seed} {night}")
        self._slots = [0] * fleet.n_runners
        self._zygote = FIRST_ZYGOTE

    @property
    def runners(self) -> int:
        return self._fleet.n_runners

    def has(self, build: str, runner: int = 0) -> bool:
        return True

    @property
    def processes(self) -> int:
        """Used so far."""
        return sum(self._slots)

    def pairs(
        self, wanted: Sequence[PairsWanted], rounds: int, decided: Decided, runner: int = 0
    ) -> Sequence[Sequence[LogRatios]]:
        found: list[list[LogRatios]] = [[] for _ in wanted]
        left: Collection[int] = range(len(wanted))
        for _ in range(rounds):
            for index in left:
                found[index].append({CHANNEL: self._pair(wanted[index], runner)})
            done = set(decided(found))
            left = [index for index in left if index not in done]
            if not left:
                break
        return found

    def _pair(self, wanted: PairsWanted, runner: int) -> float:
        test = self._index[wanted.test]
        sides = [(wanted.base, -1.0), (wanted.head, 1.0)]
        if self._coin.random() < 0.5:
            sides.reverse()
        return sum(sign * float(np.log(self._process(test, _number(build), runner))) for build, sign in sides)

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        return {
            test: {CHANNEL: [self._process(self._index[test], _number(build), 0) for _ in range(processes)]}
            for test in tests
        }

    def one_by_one(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Sequence[Ended]]:
        """Every process of a fleet ends ok."""
        return {
            test: [Ended(Status.OK, values={CHANNEL: value}) for value in values[CHANNEL]]
            for test, values in self.again(tests, build, processes).items()
        }

    def _process(self, test: int, build: int, runner: int) -> float:
        on = (self._fleet.runner(self._night) + runner) % self._fleet.n_runners
        slot, self._slots[on] = self._slots[on], self._slots[on] + 1
        self._zygote += 1
        return self._fleet.measure(test, build, self._night, on, self._zygote, 0, slot)


def _build(night: int) -> str:
    return f"build{night}"


def _number(build: str) -> int:
    return int(build.removeprefix("build"))


def replay_fleet(
    fleet: Fleet, seed: int, rules: Rules, watch: Callable[[int, Outcome], None] = lambda night, outcome: None
) -> dict[str, Any]:
    """What is filed over all nights, in the form that the fleet's judge reads. `watch` is told each night's outcome."""
    state = ClassState()
    keys = tuple(SeriesKey(test, CHANNEL) for test in fleet.tests)
    logs = np.empty((len(keys), fleet.n_nights))
    variances = np.empty_like(logs)
    when = tuple(FIRST_NIGHT + timedelta(days=night) for night in range(fleet.n_nights))
    position = {one: night for night, one in enumerate(when)}
    runners: list[int] = []
    environments: list[str] = []
    canaries: list[FloatArray] = []
    found: dict[str, Any] = {"seed": seed, "processes": 0, "alerts": [], "intervals": []}
    for night in range(fleet.n_nights):
        runners.append(fleet.runner(night))
        environments.append(fleet.environment(night, runners[night]))
        values = np.log(fleet.night_values(night, runners[night]))
        logs[:, night], variances[:, night] = np.median(values, axis=1), np.var(values, axis=1, ddof=1)
        canaries.append(np.log(fleet.canary(night, runners[night])))
        begin = max(0, night + 1 - WINDOW)
        window = slice(begin, night + 1)
        seen = Seen(
            series=keys,
            nights=when[window],
            builds=tuple(map(_build, range(begin, night + 1))),
            environments=tuple(environments[window]),
            runners=tuple(f"runner{runner}" for runner in runners[window]),
            logs=logs[:, window],
            variances=variances[:, window],
            processes=REPLICATES,
            canary=_canary_moved(canaries, environments, state, position),
        )
        bench = FleetBench(fleet, night, seed)
        outcome = run_night(seen, state, bench, rules)
        watch(night, outcome)
        found["processes"] += bench.processes
        _tell(outcome, night, position, fleet, found)
    return found


def told(found: Mapping[str, Any]) -> str:
    """What a replay came to, in one line."""
    kinds = Counter(alert["kind"] for alert in {one["id"]: one for one in found["alerts"]}.values())
    alerts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
    return f"seed {found['seed']}: filed {alerts}; {found['processes']} processes beside the nightly's"


def _canary_moved(
    canaries: Sequence[FloatArray], environments: Sequence[str], state: ClassState, position: Mapping[datetime, int]
) -> str:
    """Whether the frozen build is off what it was since this environment began."""
    tonight = len(canaries) - 1
    since = max(
        (position[era.since] for era in state.eras if era.environment == environments[tonight]), default=tonight
    )
    earlier = [night for night in range(since, tonight) if environments[night] == environments[tonight]]
    if len(earlier) < _CANARY_NIGHTS:
        return ""
    medians = np.median(np.stack([canaries[night] for night in (*earlier, tonight)]), axis=2)
    level = np.median(medians[:-1], axis=0)
    scale = np.maximum(1.4826 * np.median(np.abs(medians[:-1] - level), axis=0), 5e-4)
    distances = np.clip((medians[-1] - level) / scale, -_CANARY_CLIP, _CANARY_CLIP)
    moved = abs(float(distances.mean())) * np.sqrt(len(distances))
    return f"the frozen build moved by {moved:.1f} standard deviations" if moved > CANARY_LIMIT else ""


def _tell(outcome: Outcome, night: int, position: Mapping[datetime, int], fleet: Fleet, found: dict[str, Any]) -> None:
    index = {f"{test} {CHANNEL}": number for number, test in enumerate(fleet.tests)}
    for filed in outcome.filed:
        alert: dict[str, Any] = {"night": night, "kind": filed.kind, "id": filed.id}
        if filed.kind != "environment":
            alert |= {
                "tests": [index[name] for name in filed.series],
                "onset_lo": position[filed.onset.low],
                "onset_hi": position[filed.onset.high],
            }
        found["alerts"].append(alert)
    for interval, confirmed in outcome.intervals:
        found["intervals"].append(
            {
                "test": index[f"{interval.test} {CHANNEL}"],
                "base": position[interval.base],
                "head": position[interval.head],
                "lo_pct": 100 * interval.low,
                "hi_pct": 100 * interval.high,
                "confirmed": confirmed,
            }
        )
