"""A fleet of forty tests and sixty nights with planted changes, small enough for every test run; and benches.

`SmallFleet` has the methods that `baselines.fleet_replay.Fleet` names. Every value is a function of the seed and of
the arguments. What a detector must not read raises.
"""

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from baselines.confirming.bench import Decided, Ended, LogRatios, PairsWanted, Values
from baselines.confirming.seen import Seen, SeriesKey
from baselines.confirming.state import Accounts, ClassState, Era
from torchbenchmark.records import Status

CHANNEL = "value"
FIRST_NIGHT = datetime(2000, 1, 1, tzinfo=UTC)


class SmallFleet:
    """Of a scenario: `tests`, `nights`, `runners`, `alternate`, `steps` [{build, size, tests, until}], `drivers`
    [{night, size, tests, silent}], `missing` [{test, first, last}], `bimodal` and `spiky` [test]."""

    def __init__(self, scenario: Mapping, seed: int) -> None:
        self._scenario, self._seed = dict(scenario), seed
        self.n_tests, self.n_nights = scenario.get("tests", 40), scenario.get("nights", 60)
        self.n_runners = scenario.get("runners", 1)
        self.tests = [f"test_eval[m{number:02}-cuda-eager]" for number in range(self.n_tests)]
        rng = self._rng("fleet")
        self._level = rng.uniform(-7, 0, self.n_tests)
        self._night_sd = rng.uniform(0.0005, 0.002, self.n_tests)
        self._process_sd = rng.uniform(0.001, 0.003, self.n_tests)
        self._machines = rng.normal(0, 0.02, (self.n_runners, self.n_tests))
        self.asked_night = -1  # the newest that anything was asked of

    @property
    def build_events(self):
        raise AssertionError("a detector has read what was planted")

    env_events = build_events

    def truth(self, build):
        raise AssertionError("a detector has read what was planted")

    def runner(self, night: int) -> int:
        self.asked_night = max(self.asked_night, night)
        return night % self.n_runners if self._scenario.get("alternate") else 0

    def environment(self, night: int, runner: int) -> str:
        self.asked_night = max(self.asked_night, night)
        told = sum(
            night >= one["night"]
            for one in self._scenario.get("drivers", ())
            if not one.get("silent") and _on(one, runner)
        )
        return f"runner{runner} driver{told}"

    def night_values(self, night: int, runner: int) -> np.ndarray:
        found = np.exp(np.stack([self._fresh("nightly", night, night, runner, number) for number in range(3)], axis=1))
        for one in self._scenario.get("missing", ()):
            if one["first"] <= night <= one["last"]:
                found[one["test"]] = np.nan
        return found

    def canary(self, night: int, runner: int) -> np.ndarray:
        return np.exp(np.stack([self._fresh("canary", 0, night, runner, number)[-5:] for number in range(3)], axis=1))

    def measure(self, test: int, build: int, night: int, runner: int, zygote: int, process: int, slot: int) -> float:
        assert 0 <= build <= night, "a build of the future"
        rng = self._rng("process", test, build, night, runner, zygote, process)
        log = self._steady(build, night, runner)[test] + self._process_sd[test] * rng.normal()
        if test in self._scenario.get("bimodal", ()):
            log += 0.05 * (rng.random() < 0.3)
        return float(np.exp(log))

    def effect(self, test: int, base: int, head: int) -> float:
        """What was planted between two builds, as a share: for the judging tests."""
        return float(np.expm1(self._planted(head)[test] - self._planted(base)[test]))

    def _fresh(self, what: str, build: int, night: int, runner: int, replicate: int) -> np.ndarray:
        rng = self._rng(what, build, night, runner, replicate)
        logs = self._steady(build, night, runner) + self._process_sd * rng.normal(size=self.n_tests)
        for test in self._scenario.get("bimodal", ()):
            logs[test] += 0.05 * (rng.random() < 0.3)
        return logs

    def _steady(self, build: int, night: int, runner: int) -> np.ndarray:
        rng = self._rng("night", night, runner)
        logs = (
            self._level + self._machines[runner] + self._planted(build) + self._night_sd * rng.normal(size=self.n_tests)
        )
        for test in self._scenario.get("spiky", ()):
            logs[test] += 0.04 * (rng.random() < 0.1)
        for one in self._scenario.get("drivers", ()):
            if night >= one["night"] and _on(one, runner):
                logs[list(one["tests"])] += np.log1p(one["size"])
        return logs

    def _planted(self, build: int) -> np.ndarray:
        logs = np.zeros(self.n_tests)
        for one in self._scenario.get("steps", ()):
            if one["build"] <= build < one.get("until", 10**6):
                logs[list(one["tests"])] += np.log1p(one["size"])
        return logs

    def _rng(self, *key: object) -> np.random.Generator:
        return np.random.default_rng([self._seed, *(zlib.crc32(str(part).encode()) for part in key)])


def _on(driver: Mapping, runner: int) -> bool:
    return runner in driver.get("runners", (runner,))


def when(night: int) -> datetime:
    return FIRST_NIGHT + timedelta(days=night)


def seen_of(fleet: SmallFleet, night: int, *, window: int = 150, canary: str = "") -> Seen:
    """The nights of a fleet up to one of them."""
    nights = range(max(0, night + 1 - window), night + 1)
    values = np.log(np.stack([fleet.night_values(one, fleet.runner(one)) for one in nights], axis=1))
    return Seen(
        series=tuple(SeriesKey(test, CHANNEL) for test in fleet.tests),
        nights=tuple(map(when, nights)),
        builds=tuple(f"build{one}" for one in nights),
        environments=tuple(fleet.environment(one, fleet.runner(one)) for one in nights),
        runners=tuple(f"runner{fleet.runner(one)}" for one in nights),
        logs=np.median(values, axis=2),
        variances=np.var(values, axis=2, ddof=1),
        processes=3,
        canary=canary,
    )


@dataclass
class ScriptedBench:
    """Answers from a script: `ratio(wanted, number, runner)` is the pair of that number of a test tonight, None one
    that failed; `level(test, build)` what `again` measures, None nothing; `ended(test, build, number)` how the
    process of that number ends. It remembers what it was asked."""

    ratio: Callable[[PairsWanted, int, int], LogRatios | None] = lambda wanted, number, runner: {CHANNEL: 0.0}
    level: Callable[[str, str], float | None] = lambda test, build: None
    ended: Callable[[str, str, int], Ended] = lambda test, build, number: Ended(Status.OK)
    runners: int = 1
    gone: Collection[str] = ()  # builds that cannot be measured any more
    gone_there: Collection[str] = ()  # on the other runner
    asked: list[tuple[PairsWanted, int]] = field(default_factory=list)  # with the pairs that each call gave
    calls: list[tuple[int, int, int]] = field(default_factory=list)  # (how many wanted, rounds, runner)
    measured: list[tuple[str, str]] = field(default_factory=list)

    def has(self, build: str, runner: int = 0) -> bool:
        return build not in (self.gone_there if runner else self.gone)

    def pairs(
        self, wanted: Sequence[PairsWanted], rounds: int, decided: Decided, runner: int = 0
    ) -> Sequence[Sequence[LogRatios]]:
        assert not {build for one in wanted for build in (one.base, one.head)} & set(self.gone), "a build that is gone"
        self.calls.append((len(wanted), rounds, runner))
        numbers: dict[PairsWanted, int] = {}
        found: list[list[LogRatios]] = [[] for _ in wanted]
        left = list(range(len(wanted)))
        for _ in range(rounds):
            for index in left:
                number = numbers[wanted[index]] = numbers.get(wanted[index], -1) + 1
                pair = self.ratio(wanted[index], number, runner)
                if pair is not None:
                    found[index].append(pair)
            done = set(decided(found))
            left = [index for index in left if index not in done]
            if not left:
                break
        self.asked += [(one, len(pairs)) for one, pairs in zip(wanted, found, strict=True)]
        return found

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        assert build not in self.gone, "a build that is gone"
        self.measured += [(test, build) for test in tests]
        levels = {test: self.level(test, build) for test in tests}
        return {test: {CHANNEL: [level] * processes} for test, level in levels.items() if level is not None}

    def one_by_one(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Sequence[Ended]]:
        assert build not in self.gone, "a build that is gone"
        self.measured += [(test, build) for test in tests]
        return {test: [self.ended(test, build, number) for number in range(processes)] for test in tests}


def calm(series: int = 20, nights: int = 40, sd: float = 0.002) -> np.ndarray:
    """Logs of nights in which nothing happens: (series, nights)."""
    return np.random.default_rng(5).normal(0, sd, (series, nights)) - np.arange(series)[:, None] % 7


def stepped(logs: np.ndarray, rows: Sequence[int], at: int, size: float) -> np.ndarray:
    """The same, with a step of a share from a night on; negative nights count from tonight, -1."""
    found = logs.copy()
    found[list(rows), at:] += np.log1p(size)
    return found


def seen_of_logs(logs: np.ndarray, *, until: int | None = None, channels: int = 1, **others) -> Seen:
    """The nights of an array up to and with `until`, all of one environment if nothing else is said. Of several
    channels, neighbouring rows are those of one test."""
    series, nights = logs.shape
    names = [CHANNEL, *(f"channel{number}" for number in range(1, channels))]
    keys = tuple(
        SeriesKey(f"test_eval[m{row // channels:02}-cuda-eager]", names[row % channels]) for row in range(series)
    )
    whole = {
        "nights": tuple(map(when, range(nights))),
        "builds": tuple(f"build{night}" for night in range(nights)),
        "environments": ("driver0",) * nights,
        "runners": ("runner0",) * nights,
        "logs": logs,
        "variances": np.full(logs.shape, 0.002**2),
    }
    fixed = {"series": keys, "processes": 3, "canary": ""}
    given = fixed | whole | others
    upto = nights if until is None else until + 1
    return Seen(
        **{
            name: value[..., :upto] if isinstance(value, np.ndarray) else value[:upto] if name in whole else value
            for name, value in given.items()
        }
    )


def known_state(seen: Seen) -> ClassState:
    """The state of a class whose only environment has been known since its first night, the night before tonight."""
    era = Era(environment=seen.environments[0], runner=seen.runners[0], since=seen.nights[0])
    accounts = Accounts(nights=len(seen.nights) - 15)
    return ClassState(eras=[era], last_night=seen.nights[-2], accounts=accounts)


def shifted(size: float, *rows: int, spread: float = 0.002) -> Callable[[PairsWanted, int, int], LogRatios]:
    """Pairs of a change of so much, in these tests only, with a little noise; a build against itself is the same."""
    tests = [f"test_eval[m{row:02}-cuda-eager]" for row in rows]

    def ratio(wanted: PairsWanted, number: int, runner: int) -> LogRatios:
        noise = spread * (-1, 0.3, 0.8, -0.4)[number % 4]
        changed = wanted.base != wanted.head and wanted.test in tests
        return {CHANNEL: noise + (float(np.log1p(size)) if changed else 0.0)}

    return ratio
