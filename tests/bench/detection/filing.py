"""What would have been filed on simulated fleets, held against what truly changed there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fleet
from fleet_runs import Counts, fleet_runs, load_scenarios
from markdown_page import pooled_rate, table, verdict
from other_rules import beside_other_rules

SEEDS = range(1, 21)
HORIZONS = (3, 14)  # nights, that of the onset among them


@dataclass(frozen=True)
class Floor:
    """What must be held, and what is wanted beyond it."""

    least: float
    wanted: float | None = None
    at_most: bool = False

    def of(self, value: float) -> str:
        told = f"{'<=' if self.at_most else '>='} {self.least:g} {verdict(self._holds(value, self.least))}"
        if self.wanted is None:
            return told
        return f"{told} ({self.wanted:g} {'reached' if self._holds(value, self.wanted) else 'not'})"

    def _holds(self, value: float, limit: float) -> bool:
        return value <= limit if self.at_most else value >= limit


FALSE_ALARMS = {  # in 30 nights
    "same_code": Floor(0.3, 0.1, at_most=True),
    "mixed": Floor(0.7, 0.3, at_most=True),
    "harsh": Floor(1, 0.5, at_most=True),
    "alternating": Floor(1, 0.5, at_most=True),
    "driver_only": Floor(0.3, at_most=True),
    "silent_driver": Floor(0.3, at_most=True),
    "global_build": Floor(0.5, at_most=True),
    "coincidence": Floor(0.5, at_most=True),
}
ONE_NOTE, NO_NOTE = ("driver_only", "silent_driver"), ("same_code", "global_build", "coincidence")
MAIN, OF_STEPS, OF_A_BUILD = "mixed", ("mixed", "harsh", "alternating"), ("global_build", "coincidence")
PRECISION, DRIFTS = Floor(0.95, 0.98), Floor(0.9, 0.98)
PROCESSES = Floor(15, 11, at_most=True)  # % of the nightly's
MOST_DUPLICATES = 1  # in all seeds of a scenario
COVERAGE, FEWEST_INTERVALS = (0.92, 0.98), 1000
RECALL: dict[tuple[str, str], tuple[Floor | None, Floor | None]] = {  # (step, tests): one of each horizon
    ("10%", "calm"): (None, None),
    ("5%", "calm"): (Floor(0.92, 0.96), Floor(0.97, 0.99)),
    ("3%", "calm"): (Floor(0.80, 0.92), Floor(0.93, 0.97)),
    ("2%", "calm"): (None, Floor(0.85, 0.94)),
    ("10%", "all"): (None, None),
    ("5%", "all"): (Floor(0.76, 0.88), Floor(0.89, 0.95)),
    ("3%", "all"): (Floor(0.60, 0.75), Floor(0.79, 0.87)),
    ("2%", "all"): (None, Floor(0.60, 0.75)),
}

OfScenarios = Mapping[str, list[Counts]]  # one a seed
Pooled = Mapping[str, dict[str, Any]]  # the judge's rates of each scenario


def measure(data: Path, cache: Path) -> str:
    scenarios = load_scenarios(data)
    wanted = [(name, seed) for name in FALSE_ALARMS for seed in SEEDS]
    counts: dict[str, list[Counts]] = {name: [] for name in FALSE_ALARMS}
    for (name, _), run in zip(wanted, fleet_runs(scenarios, wanted, cache), strict=True):
        counts[name].append(run.counts)
    pooled = {name: fleet.pool(of_seeds) for name, of_seeds in counts.items()}
    main = scenarios[MAIN]
    return (
        f"Simulated fleets, seeds {SEEDS[0]} - {SEEDS[-1]} of each scenario: {main['tests']} tests, {main['nights']} "
        "nights, each through the rules of confirming as the nightly has them, judged against what truly changed. "
        "mixed: steps of 1 - 20 %, drifts, two new drivers; harsh: the same with twice the noise of a zygote, builds "
        "that are a little off for good, drift inside pairs; alternating: the same on two runners by turns; "
        "driver_only, silent_driver: one driver moves most tests, the second time the fingerprint does not tell; "
        "global_build: one build slows most tests; coincidence: a harmless new driver comes with it. Brackets: 95 % "
        "bootstrap over seeds. Beside a floor stands in parentheses what is wanted beyond it.\n\n"
        "false alarms: in 30 nights, alerts of which not half the tests changed in that direction within 2 builds of "
        "the stated onset, and notes on an environment that did not change. duplicates: in all seeds. precision: the "
        "share of right (alert, test). environment: changes that got a note within 3 nights, and how often one was "
        "filed or another runner joined to it. onset: builds that an alert leaves open, on average.\n\n"
        f"{table(alarm_rows(counts, pooled))}\n"
        "coverage: 95 % intervals that hold the true change, of confirmed changes and of a build against itself, in "
        f"parentheses their number (no verdict on fewer than {FEWEST_INTERVALS}). processes: for confirmation and "
        "bridging, in % of the nightly's.\n\n"
        f"{table(interval_rows(counts, pooled))}\n"
        "Recall: of (step, test), those in an alert that is right, filed in one of the first 3 or 14 nights with the "
        "step. Slower ones; wild tests not counted, and in 14 nights no step that is reverted before. calm: the "
        "nightly value has a standard deviation of at most 1 %. drift: .5 % a night for 16 nights, filed until 14 "
        f"nights after its end. The floors are those of {MAIN}; {' and '.join(OF_STEPS[1:])} are held against them "
        "too.\n\n"
        f"{table(recall_rows(counts, pooled))}\n"
        f"{beside_other_rules(scenarios, counts)}"
    )


def alarm_rows(counts: OfScenarios, pooled: Pooled) -> list[list[str]]:
    rows = [["scenario", "false alarms", "floor", "duplicates", "precision", "floor", "environment", "onset"]]
    for name, rates in pooled.items():
        duplicates = total(counts[name], "duplicates") + total(counts[name], "duplicate_notes")
        precision, width = rates["precision_of_alert_tests"], rates["mean_onset_width"]
        rows.append(
            [
                name,
                pooled_rate(rates["false_alarms_per_30_nights"]),
                FALSE_ALARMS[name].of(rates["false_alarms_per_30_nights"][0]),
                f"{duplicates} {verdict(duplicates <= MOST_DUPLICATES)}",
                pooled_rate(precision, 3),
                PRECISION.of(precision[0]) if precision else "",
                environment(name, counts[name], rates["environment_found"]),
                f"{width[0]:.1f}" if width else "",
            ]
        )
    return rows


def environment(name: str, counts: Sequence[Counts], found: Sequence[float] | None) -> str:
    notes = total(counts, "notes")
    told = f"{found[0]:.2f}, {notes} notes" if found else f"{notes} notes"
    if name in NO_NOTE:
        return f"{told}; none {verdict(notes == 0)}"
    if name in ONE_NOTE:
        each_its_own = all(one["notes"] == 1 and one["environment"] == [1, 1] for one in counts)
        return f"{told}; one a seed {verdict(each_its_own)}"
    return told


def interval_rows(counts: OfScenarios, pooled: Pooled) -> list[list[str]]:
    rows = [["scenario", "coverage, confirmed", "floor", "coverage, A/A", "processes", "floor"]]
    for name, rates in pooled.items():
        confirmed, itself = (sum(one["cover"][which][0] for one in counts[name]) for which in (0, 1))
        covered, cost = rates["coverage_confirmed"], [100 * share for share in rates["processes_of_nightly"]]
        low, high = COVERAGE
        rows.append(
            [
                name,
                f"{pooled_rate(covered, 3)} ({confirmed})" if confirmed else "",
                f"{low} - {high} {verdict(low <= covered[0] <= high)}" if confirmed >= FEWEST_INTERVALS else "",
                f"{pooled_rate(rates['coverage_other'], 3)} ({itself})" if itself else "",
                pooled_rate(cost, 1),
                PROCESSES.of(cost[0]) if name == MAIN else "",
            ]
        )
    return rows


def recall_rows(counts: OfScenarios, pooled: Pooled) -> list[list[str]]:
    rows = [["scenario", "step", "tests", "number"]]
    for nights in HORIZONS:
        rows[0] += [f"within {nights}", "floor"]
    for name in (*OF_STEPS, *OF_A_BUILD):
        for (size, tests), floors in RECALL.items():
            recall = pooled[name]["recall"].get(size if tests == "all" else f"{size} {tests}")
            if recall is None:
                continue
            rows.append([name, size, tests, str(recall["n"])])
            for nights, floor in zip(HORIZONS, floors, strict=True):
                share = recall[f"within_{nights}"]
                rows[-1] += [pooled_rate(share), floor.of(share[0]) if floor and share and name in OF_STEPS else ""]
        drifts = pooled[name]["drifts_found"]
        if drifts:
            number = sum(one["drifts"][0] for one in counts[name])
            rows.append([name, "drift", "all", str(number), "", "", pooled_rate(drifts), DRIFTS.of(drifts[0])])
    return rows


def total(counts: Sequence[Counts], name: str) -> int:
    return sum(one[name] for one in counts)
