"""Whether what a build slows is among the first suspects of the first nights: a simulated fleet, night by night."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fleet
import numpy as np
from fleet_runs import TOP, fleet_runs, load_scenarios
from markdown_page import table, verdict, with_interval
from scores import rate_interval

from baselines.screening.evidence import drift_evidence, step_evidence
from baselines.screening.noise import running_scale
from baselines.screening.shifts import KNOBS, WINDOW, replay

SCENARIO, SEEDS = "steps_only", range(1, 11)
CONFIRMED_SCENARIO, CONFIRMED_SEEDS = "mixed", range(1, 21)
FIRST_NIGHTS = 3
FLOORS = {0.03: 0.60, 0.05: 0.80}
SIZES = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)


@dataclass(frozen=True)
class Hit:
    size: float  # of the step as planned: an improvement counts with its inverse
    noise: str
    found: bool


def measure(data: Path, cache: Path) -> str:
    scenarios = load_scenarios(data)
    scenario = scenarios[SCENARIO]
    seeds = [hits_of_screen(fleet.Fleet(scenario, seed)) for seed in SEEDS]
    confirmed = hits_of_confirming(scenarios, cache)
    return (
        f"Simulated fleet, scenario {SCENARIO}, seeds {SEEDS[0]} - {SEEDS[-1]}: {scenario['tests']} tests, "
        f"{scenario['nights']} nights, each night's value the median of three processes. Share of (step, test) whose "
        f"test is among the {TOP} first suspects of one of the first {FIRST_NIGHTS} nights with the step, in either "
        "direction; tests of the wild class not counted; levels that the replay (default) reported are the new "
        "baseline from the next night on. Ranked by the screen's evidence. Brackets: bootstrap over seeds.\n\n"
        f"{table(rows_by_size(seeds))}\n"
        f"Scenario {CONFIRMED_SCENARIO}, seeds {CONFIRMED_SEEDS[0]} - {CONFIRMED_SEEDS[-1]}, with drifts and two new "
        "drivers, the whole of confirming at work: what it confirmed is the new baseline, what is slow by a driver is "
        f"told apart. The same share of the first {TOP} in the order in which it would measure them again, before its "
        "limits; a test that it confirmed in one of those nights counts as well.\n\n"
        f"{table(rows_by_size(confirmed))}"
    )


def rows_by_size(seeds: list[list[Hit]]) -> list[list[str]]:
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
    return rows


def most_suspect_first(logs: np.ndarray, since: np.ndarray) -> np.ndarray:
    """The series, by the screen's evidence of tonight; logs: up to tonight, since: the first night of each level."""
    scales, skipped = running_scale(logs[:, :-1])[:, -1], max(0, logs.shape[1] - WINDOW)
    window, began = logs[:, skipped:], np.maximum(0, since - skipped)
    scores = [find(window, scales, began).score for find in (step_evidence, drift_evidence)]
    return np.argsort(-np.maximum(*scores), kind="stable")


def hits_of_screen(simulated: fleet.Fleet) -> list[Hit]:
    nights = range(simulated.n_nights)
    values = [np.median(simulated.night_values(night, simulated.runner(night)), axis=1) for night in nights]
    logs = np.log(np.stack(values, axis=1))
    reports = replay(list(logs), KNOBS["default"])
    steps = [event for event in simulated.build_events if event["kind"] == "step"]
    wanted = {event["build"] + later for event in steps for later in range(FIRST_NIGHTS)}
    first = {
        night: set(most_suspect_first(logs[:, : night + 1], levels_begin(reports, night))[:TOP].tolist())
        for night in sorted(wanted)
        if night < simulated.n_nights
    }
    return hits(simulated, first)


def hits_of_confirming(scenarios: dict[str, Any], cache: Path) -> list[list[Hit]]:
    runs = fleet_runs(scenarios, [(CONFIRMED_SCENARIO, seed) for seed in CONFIRMED_SEEDS], cache)
    return [
        hits(
            fleet.Fleet(scenarios[CONFIRMED_SCENARIO], seed),
            {
                night: {*first, *confirmed}
                for night, (first, confirmed) in enumerate(zip(run.first, run.confirmed, strict=True))
            },
        )
        for seed, run in zip(CONFIRMED_SEEDS, runs, strict=True)
    ]


def hits(simulated: fleet.Fleet, shown: Mapping[int, Set[int]]) -> list[Hit]:
    """shown: by night, the tests that somebody would have looked at."""
    found = []
    for event in simulated.build_events:
        if event["kind"] != "step":
            continue
        size = event["size"] if event["size"] > 0 else 1 / (1 + event["size"]) - 1
        first_nights = [shown.get(event["build"] + later, set()) for later in range(FIRST_NIGHTS)]
        for test in map(int, event["tests"]):
            if simulated.noise_class[test] != "wild":
                noise = str(simulated.noise_class[test])
                found.append(Hit(round(size, 4), noise, any(test in night for night in first_nights)))
    return found


def levels_begin(reports, night: int) -> np.ndarray:
    """Per series, the onset of what was last reported before tonight."""
    return np.array([max((shift.onset for shift in found if shift.reported < night), default=0) for found in reports])


def share_found(seeds: list[list[Hit]], size: float, noise: str | None = None) -> tuple[float, tuple[float, float]]:
    chosen = [[hit.found for hit in hits if hit.size == size and noise in (None, hit.noise)] for hits in seeds]
    return rate_interval(np.array([sum(found) for found in chosen]), np.array([len(found) for found in chosen]))
