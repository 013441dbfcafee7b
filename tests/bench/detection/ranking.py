"""Whether what a build slows is among the first suspects of the first nights: a simulated fleet, night by night."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fleet
import numpy as np
import yaml
from markdown_page import table, verdict, with_interval
from scores import rate_interval

from baselines.screening.noise import running_scale
from baselines.screening.shifts import KNOBS, replay

SCENARIO, SEEDS = "steps_only", range(1, 11)
TOP, FIRST_NIGHTS = 50, 3
FLOORS = {0.03: 0.60, 0.05: 0.80}
SIZES = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)
# (logs of all series up to tonight, first night of each one's level) -> the series, most suspect first
Ranking = Callable[[np.ndarray, np.ndarray], np.ndarray]


def by_newest_nights(logs: np.ndarray, since: np.ndarray) -> np.ndarray:
    """Placeholder: the largest |median of the newest 1, 2 or 3 nights - median of up to 20 before| over the scale of
    such a median."""
    scales = running_scale(logs)[:, -2]
    best = np.zeros(len(logs))
    for newest in (1, 2, 3):
        before = np.where(np.arange(logs.shape[1]) >= since[:, None], logs, np.nan)[:, -20 - newest : -newest]
        enough = np.isfinite(before).sum(axis=1) >= 5
        level = np.nanmedian(np.where(enough[:, None], before, 0.0), axis=1)
        change = np.abs(np.median(logs[:, -newest:], axis=1) - level) / scales * np.sqrt(newest)
        best = np.maximum(best, np.where(enough, change, 0.0))
    return np.argsort(-best, kind="stable")


RANKING: Ranking = by_newest_nights


@dataclass(frozen=True)
class Hit:
    size: float  # of the step as planned: an improvement counts with its inverse
    noise: str
    found: bool


def measure(data: Path, cache: Path) -> str:
    scenario = yaml.safe_load((data.parent / "tools" / "fleet.yaml").read_text())[SCENARIO]
    seeds = [hits_of_fleet(fleet.Fleet(scenario, seed), RANKING) for seed in SEEDS]
    rows = [["step", "among the first", "quiet", "noisy", "floor"]]
    for size in SIZES:
        share = share_found(seeds, size)
        floor = FLOORS.get(size)
        rows.append(
            [
                f"{size:.0%}",
                with_interval(*share),
                *(with_interval(*share_found(seeds, size, noise)) for noise in ("quiet", "noisy")),
                "" if floor is None else f">= {floor} {verdict(share[0] >= floor)}",
            ]
        )
    return (
        f"Simulated fleet, scenario {SCENARIO}, seeds {SEEDS[0]} - {SEEDS[-1]}: {scenario['tests']} tests, "
        f"{scenario['nights']} nights, each night's value the median of three processes. Share of (step, test) whose "
        f"test is among the {TOP} first suspects of one of the first {FIRST_NIGHTS} nights with the step, in either "
        "direction; tests of the wild class not counted; levels that the replay (default) reported are the new "
        f"baseline from the next night on. Ranked {RANKING.__name__.replace('_', ' ')}. Brackets: bootstrap over "
        f"seeds.\n\n{table(rows)}"
    )


def hits_of_fleet(simulated: fleet.Fleet, ranking: Ranking) -> list[Hit]:
    nights = range(simulated.n_nights)
    values = [np.median(simulated.night_values(night, simulated.runner(night)), axis=1) for night in nights]
    logs = np.log(np.stack(values, axis=1))
    reports = replay(list(logs), KNOBS["default"])
    steps = [event for event in simulated.build_events if event["kind"] == "step"]
    wanted = {event["build"] + later for event in steps for later in range(FIRST_NIGHTS)}
    first = {
        night: set(ranking(logs[:, : night + 1], levels_begin(reports, night))[:TOP].tolist())
        for night in sorted(wanted)
        if night < simulated.n_nights
    }
    hits = []
    for event in steps:
        size = event["size"] if event["size"] > 0 else 1 / (1 + event["size"]) - 1
        for test in map(int, event["tests"]):
            shown = [first.get(event["build"] + later, set()) for later in range(FIRST_NIGHTS)]
            if simulated.noise_class[test] != "wild":
                hits.append(Hit(round(size, 4), str(simulated.noise_class[test]), any(test in one for one in shown)))
    return hits


def levels_begin(reports, night: int) -> np.ndarray:
    """Per series, the onset of what was last reported before tonight."""
    return np.array([max((shift.onset for shift in found if shift.reported < night), default=0) for found in reports])


def share_found(seeds: list[list[Hit]], size: float, noise: str | None = None) -> tuple[float, tuple[float, float]]:
    chosen = [[hit.found for hit in hits if hit.size == size and noise in (None, hit.noise)] for hits in seeds]
    return rate_interval(np.array([sum(found) for found in chosen]), np.array([len(found) for found in chosen]))
