"""A small store: two nights whose builds are commits of a small repository, and the alert that the second has opened.
And an instrument that makes up what its commits measure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from night_factory import FIRST_NIGHT, A, B, run_of
from small_repository import SmallRepository

from baselines.confirming.state import Interval
from baselines.history import add_night
from baselines.runs import run_prefix, store_run
from baselines.store import Store, open_store
from bot.bisection.document import Made, Visit
from bot.bisection.git_range import GitRange
from bot.github.alert import Alert, AlertNight
from bot.github.alert_store import change_alerts, read_alerts
from torchbenchmark.environment import cpu_class
from torchbenchmark.records import Environment, Run

KEY = "00000000000000aa"
THREADS = 4
HERE = cpu_class(THREADS)


def at(day: int):
    return FIRST_NIGHT + timedelta(days=day)


def interval(test: str, effect: float, channel: str = "cpu_time", base: int = 0, head: int = 1) -> Interval:
    return Interval(
        test=test, channel=channel, base=at(base), head=at(head), effect=effect, low=effect - 0.01, high=effect + 0.01
    )


def store_night(
    store: Store, day: int, commit: str | None, machine_class: str = HERE, version: str = "1.0", **environment: str
) -> None:
    """The night of a build of a commit; `environment` are facts of the machine."""
    run = run_of_commit(day, commit, {A: 1.0, B: 1.0}, machine_class, version, **environment)
    store_run(store, run)
    add_night(store, run_prefix(run.header))


def run_of_commit(
    day: int,
    commit: str | None,
    tests: Mapping[str, float],
    machine_class: str = HERE,
    version: str = "1.0",
    **environment: str,
) -> Run:
    run = run_of(day, tests, machine_class=machine_class)
    build = run.header.build.model_copy(update={"commit": commit, "version": version})
    facts = {"cpu": "a CPU", **environment}
    header = run.header.model_copy(
        update={"build": build, "environment": Environment(fingerprint=str(sorted(facts.items())), facts=facts)}
    )
    return Run(header, run.records)


def alert_of(machine_class: str = HERE, **fields: object) -> Alert:
    given = {
        "key": KEY,
        "kind": "regression",
        "suite": "smoke",
        "class": machine_class,
        "opened": at(1),
        "good_until": at(0),
        "tests": (A, B),
        "nights": (AlertNight(run="r0001", started=at(1), build="build0001", findings={A: "+12.0%"}),),
        "signal": "signal-1",
        "effects": {A: 0.12},
        "intervals": (interval(A, 0.12),),
        **fields,
    }
    return Alert.model_validate(given)


def keep_alert(store: Store, alert: Alert) -> None:
    change_alerts(store, alert.suite, alert.machine_class, lambda before: (*before, alert))


def stored_alert(store: Store, machine_class: str = HERE) -> Alert:
    return next(one for one in read_alerts(store, "smoke", machine_class) if one.key == KEY)


def store_of(
    folder: Path, repository: SmallRepository, good: str, bad: str, machine_class: str = HERE, **moved: str
) -> Store:
    """The nights of two commits and the alert of the second; `moved` are facts that only its machine has."""
    store = open_store(str(folder))
    store_night(store, 0, repository.git("rev-parse", good), machine_class)
    store_night(store, 1, repository.git("rev-parse", bad), machine_class, **moved)
    keep_alert(store, alert_of(machine_class))
    return store


@dataclass
class MadeUp:
    """An instrument: every commit from a culprit on is slower by its step, in log ratio."""

    line: list[str]
    steps: Mapping[str, float] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    done: list[str] = field(default_factory=list)  # what it was asked, in order

    def build(self, commit: str) -> Made:
        self.done.append(f"build {commit}")
        return Made(commit=commit, ok=commit not in self.broken, reason="`told` @so", seconds=1.0)

    def measure(self, good: str, visit: Visit, keep) -> Visit:
        self.done.append(f"measure {visit.commit}")
        level = self._level(visit.commit) - self._level(good)
        noise = random.Random(f"{visit.number} {visit.commit}")
        values = tuple(level + noise.gauss(0, 0.005) for _ in range(visit.n))
        return visit.model_copy(update={"values": values, "seconds": float(visit.n)})

    def _level(self, commit: str) -> float:
        """Of a commit that takes a culprit back, that of the good end."""
        place = self.line.index(commit) if commit in self.line else 0
        return sum(step for culprit, step in self.steps.items() if self.line.index(culprit) <= place)


def made_up(repository: SmallRepository, good: str, bad: str, culprit: str | None = None, step: float = 0.12) -> MadeUp:
    line = GitRange(repository.folder, good, bad).line
    return MadeUp(line, {} if culprit is None else {repository.git("rev-parse", culprit): step})
