"""What simple rules would have filed on the same simulated fleets."""

from collections.abc import Mapping, Sequence
from typing import Any

import fleet
import numpy as np
from fleet_runs import Counts
from markdown_page import pooled_rate, table
from simple_rules import FILED_ONCE, RULES, file_findings

SEEDS = range(1, 11)
SCENARIOS = ("same_code", "mixed", "driver_only", "global_build")
WITH_STEPS = "mixed"
SIZES, HORIZONS = ("5%", "3%"), (3, 14)  # nights, that of the onset among them


def beside_other_rules(scenarios: dict[str, Any], ours: Mapping[str, Sequence[Counts]]) -> str:
    """ours: by scenario, of the seeds from 1 on."""
    head = ["rule", "filed as", *(f"false alarms, {name}" for name in SCENARIOS)]
    head += [f"{size} within {' / '.join(map(str, HORIZONS))}" for size in SIZES]
    rows = [head, row("pairs", "above", {name: ours[name][: len(SEEDS)] for name in SCENARIOS})]
    fleets = {name: [fleet.Fleet(scenarios[name], seed) for seed in SEEDS] for name in SCENARIOS}
    nights = {name: [nightly_values(one) for one in of_seeds] for name, of_seeds in fleets.items()}
    for rule_name, rule in RULES.items():
        for filed_as, by_test in (("one a night", False), ("one a test", True)):
            judged = {
                name: [
                    fleet.judge(one, file_findings(values, rule, one.seed, by_test))
                    for one, values in zip(fleets[name], nights[name], strict=True)
                ]
                for name in SCENARIOS
            }
            rows.append(row(rule_name, filed_as, judged))
    return (
        f"Simple rules on the same nights, seeds {SEEDS[0]} - {SEEDS[-1]}, both directions. Filed is one alert a "
        "night, sign and onset with all tests that are found, or one a test; no test again within "
        f"{FILED_ONCE} nights. Recall on {WITH_STEPS}, all tests. An alert with more wrong tests than right ones finds "
        f"nothing.\n\n{table(rows)}"
    )


def row(rule: str, filed_as: str, counts: Mapping[str, Sequence[Counts]]) -> list[str]:
    pooled = {name: fleet.pool(list(of_seeds)) for name, of_seeds in counts.items()}
    recall = pooled[WITH_STEPS]["recall"]
    return [
        rule,
        filed_as,
        *(pooled_rate(pooled[name]["false_alarms_per_30_nights"]) for name in SCENARIOS),
        *(" / ".join(pooled_rate(recall[size][f"within_{nights}"]) for nights in HORIZONS) for size in SIZES),
    ]


def nightly_values(simulated: fleet.Fleet) -> np.ndarray:
    """The median of the processes, shape (tests, nights)."""
    nights = range(simulated.n_nights)
    return np.stack([np.median(simulated.night_values(night, simulated.runner(night)), axis=1) for night in nights], 1)
