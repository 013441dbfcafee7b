"""How the knob `sensitive` was chosen: of many settings that with the greatest least slack over all requirements."""

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import evalkit
import numpy as np
from kept import Kept
from knobs import FLOORS, LONE_FLOOR, by_eye_reports, load_by_eye, lone_reports
from margins import slack_of, slack_of_ahead
from markdown_page import table, with_interval
from other_detectors import Found, equal_rate, tuned_rivals
from rivals import Rivals
from scores import Scored, drawn, reports_of, sandmark, score

from baselines.screening import shifts
from baselines.screening.shifts import FULL_AFTER, KNOBS, Knob, replay

COSTS, RANK_ZS, HEIGHTS, EARLY = (12, 13, 14, 15, 16), (2.2, 2.4, 2.6, 2.8), (2.2, 2.3, 2.4, 2.5, 2.6), (3, 4)
FORMERLY = Knob(13, 2.2, 2.0, early=3)  # what the knob was before it was chosen so
FLOOR = FLOORS["sensitive"]
SHOWN, AFTER = 6, 3  # settings; nights after a step, at which the table tells how much of the height is asked for
FIGURES = ("U", "blind", "F1")


@dataclass(frozen=True)
class Judged:
    knob: Knob
    figures: dict[str, float]
    slacks: dict[str, float]  # of a difference: of the lower end of its interval
    of_differences: dict[str, float]  # of the differences themselves
    ahead: dict[str, tuple[float, tuple[float, float]]]

    def least(self) -> str:
        return min(self.slacks, key=self.slacks.__getitem__)

    def least_slack(self) -> float:
        return min(self.slacks.values())

    def least_by_estimates(self) -> float:
        """As if a difference above 0 were enough, whatever its interval."""
        return min((self.slacks | self.of_differences).values())


class Judge:
    """The histories, and what the others make of them."""

    def __init__(self, data: Path, cache: Path) -> None:
        self.labelled, self.same_code = sandmark(data), evalkit.load(str(data), "aa")
        self.by_eye, self.by_eye_histories = load_by_eye(data)
        self.rivals: dict[str, Found] = tuned_rivals(Rivals(cache), self.labelled)
        self.draws_of_rivals = {
            (detector, name): draws_of(found)
            for detector, settings in self.rivals.items()
            for name, found in settings.items()
        }

    def judge(self, knob: Knob) -> Judged:
        labelled, same_code = self.labelled, self.same_code
        found = score(labelled, reports_of(labelled.names, replay([labelled.y[s] for s in labelled.names], knob)))
        by_eye = score(self.by_eye, by_eye_reports(self.by_eye_histories, knob))
        lone = lone_reports(same_code, replay([same_code.y[s] for s in same_code.names], knob))
        years = np.array([same_code.years[s] for s in same_code.names])
        lone_draws = drawn(len(years), lambda picked: lone[picked].sum() / years[picked].sum())
        draws, delays = draws_of(found), draws_of_delays(found)
        figures = {name: found.of(name) for name in FIGURES}
        figures |= {"delay": found.delay()[0], "late delay": found.delay()[1]}
        figures |= {"lone": lone.sum() / years.sum(), "by eye": by_eye.of("F1")}
        slacks = {
            "U": slack_of(FLOOR.unconfirmed - figures["U"], draws["U"]),
            "blind": slack_of(figures["blind"] - FLOOR.blind, draws["blind"]),
            "F1": slack_of(figures["F1"] - FLOOR.f1, draws["F1"]),
            "delay": slack_of(FLOOR.delay[0] - figures["delay"], delays[:, 0]),
            "late delay": slack_of(FLOOR.delay[1] - figures["late delay"], delays[:, 1]),
            "lone": slack_of(LONE_FLOOR - figures["lone"], lone_draws),
            "by eye": slack_of(figures["by eye"] - FLOOR.by_eye, draws_of(by_eye)["F1"]),
        }
        of_differences, ahead = {}, {}
        for detector, settings in self.rivals.items():
            setting = equal_rate(settings, figures["U"])
            for figure in ("blind", "F1"):
                less = draws[figure] - self.draws_of_rivals[detector, setting][figure]
                value, name = figures[figure] - settings[setting].of(figure), f"{figure}, {detector.split(',')[0]}"
                slacks[name], of_differences[name] = slack_of_ahead(less), slack_of(value, less)
                low, high = np.quantile(less, [0.025, 0.975])
                ahead[name] = value, (float(low), float(high))
        return Judged(knob, figures, slacks, of_differences, ahead)


def draws_of(found: Scored) -> dict[str, np.ndarray]:
    """The same series are drawn for all that have as many: their differences are paired."""

    def figures(picked: np.ndarray) -> list[float]:
        summary = evalkit.summary(found.counts[picked])
        return [summary[name] for name in FIGURES]

    return dict(zip(FIGURES, drawn(len(found.counts), figures).T, strict=True))


def draws_of_delays(found: Scored) -> np.ndarray:
    hits = found.counts[:, 2].astype(int)  # each has a delay
    of_series = np.split(np.array(found.delays), np.cumsum(hits)[:-1])

    def delays(picked: np.ndarray) -> np.ndarray:
        return np.quantile(np.concatenate([of_series[i] for i in picked]), [0.5, 0.9])

    return drawn(len(of_series), delays)


def measure(data: Path, cache: Path) -> str:
    judge = Judge(data, cache)
    judged = []
    with patch.object(shifts, "running_scale", Kept(shifts.running_scale)):
        for cost in COSTS:
            with patch.object(shifts, "best_paths", Kept(shifts.best_paths)):
                for z, height, early in itertools.product(RANK_ZS, HEIGHTS, EARLY):
                    judged.append(judge.judge(Knob(cost, z, height, early)))
            print(f"slack: {len(judged)} settings", file=sys.stderr)
        formerly = judge.judge(FORMERLY)
    judged.sort(key=lambda one: (-one.least_slack(), one.figures["U"]))
    met = sum(one.least_slack() >= 0 for one in judged)
    by_estimates = max(judged, key=Judged.least_by_estimates)
    shown = {one.knob: one for one in [*judged[:SHOWN], by_estimates, formerly]}
    return (
        f"{len(judged)} settings: changes for {COSTS[0]} to {COSTS[-1]}, a z of {RANK_ZS[0]} to {RANK_ZS[-1]}, h of "
        f"{HEIGHTS[0]} to {HEIGHTS[-1]}, each with the wait of the other knobs and with a shorter one. Slack: how far "
        "a figure is on the right side of its floor, in standard deviations of its bootstrap over series; of ours "
        "minus theirs at equal U (blind and F1; otava on its last nights and PELT) the lower end of the 95 % interval, "
        f"which is to be above 0. {met} of the {len(judged)} have no slack below 0. Shown: the {SHOWN} with the "
        "greatest least slack, of equal ones that with the smaller U first; the one that would be first if the "
        "differences counted instead of the lower ends; and "
        f"what the knob was before.\n\n{table(rows_of(list(shown.values()), by_estimates.knob))}"
    )


def rows_of(judged: Sequence[Judged], first_by_estimates: Knob) -> list[list[str]]:
    names = {KNOBS["sensitive"]: "taken", first_by_estimates: "first by differences", FORMERLY: "before"}
    head = ["", "cost, z, h", f"times h {AFTER} nights after", "least slack", "by differences"]
    rows = [[*head, *FIGURES, "delay", "lone", "by eye", "F1, ours minus PELT's"]]
    for one in judged:
        knob, figures = one.knob, one.figures
        value, interval = next(ahead for name, ahead in one.ahead.items() if name.startswith("F1, ruptures"))
        rows.append(
            [
                names.get(knob, ""),
                f"{knob.penalty:g}, {knob.rank_z:g}, {knob.height:g}",
                f"{1 + (FULL_AFTER - AFTER) / knob.early:.2g}",
                f"{one.least_slack():.2f} ({one.least()})",
                f"{one.least_by_estimates():.2f}",
                f"{figures['U']:.2f}",
                f"{figures['blind']:.3f}",
                f"{figures['F1']:.3f}",
                f"{figures['delay']:.0f} / {figures['late delay']:.0f}",
                f"{figures['lone']:.2f}",
                f"{figures['by eye']:.3f}",
                with_interval(value, interval, 3, "+") + ("" if interval[0] > 0 else " **not above 0**"),
            ]
        )
    return rows
