"""apache-otava, ruptures and the flat rules, night by night on the same histories, and ours minus theirs."""

from pathlib import Path

import evalkit
from flat_rule import flat_rule
from knobs import measured_row
from markdown_page import table, with_interval
from rivals import Rivals, reported_once
from scores import Scored, difference, reports_of, sandmark, score

from baselines.screening.shifts import KNOBS, replay

AGE = 7  # nights: a change point that is younger moves and goes again; waiting is to the advantage of both
NEAR = 5  # nights within which two change points of one detector are one, as reports of ours are
MAGNITUDE = 0.005
AS_PUBLISHED = {"p": 1e-3, "magnitude": 0, "nights": 0}
STRICT = {"p": 1e-7, "magnitude": MAGNITUDE, "nights": 0}
# otava finds more when it is given the last nights only: its windows then lie otherwise every night, and a step has
# more than two chances to be in the middle of one.
OTAVA_NIGHTS, P_VALUES = 100, (1e-5, 5e-6, 3e-6, 1e-6, 1e-7, 3e-8, 1e-8, 1e-9, 1e-10)
PELT_NIGHTS, PENALTIES = 150, (80, 100, 110, 150, 200, 250, 300, 450, 700, 1000)
FLAT = (0.07, 0.03)
Found = dict[str, Scored]


def measure(data: Path, cache: Path) -> str:
    labelled = sandmark(data)
    ours = {
        name: score(labelled, reports_of(labelled.names, replay([labelled.y[s] for s in labelled.names], knob)))
        for name, knob in KNOBS.items()
    }
    rivals = Rivals(cache)
    fixed = {
        "otava 0.8, its defaults (p .001)": run(rivals, labelled, "otava", AS_PUBLISHED),
        "otava 0.8, p 1e-7, .5 %": run(rivals, labelled, "otava", STRICT),
        **{
            f"flat {threshold:.0%}": score(labelled, {s: flat_rule(labelled.v[s], threshold) for s in labelled.names})
            for threshold in FLAT
        },
    }
    tuned = tuned_rivals(rivals, labelled)
    head = ["detector", "U", "blind", "blind .5-1 / 1-2 / 2-5 / >= 5 %", "F1", "delay", "reports a year"]
    rows = [measured_row(name, found) for name, found in {**ours, **fixed}.items()]
    paired = [["ours at", "theirs", "U, ours and theirs", "blind, ours minus theirs", "F1, ours minus theirs"]]
    for name, found in ours.items():
        for detector, settings in tuned.items():
            setting = equal_rate(settings, found.of("U"))
            rows.append(measured_row(f"{detector}, {setting}", settings[setting]))
            paired.append(paired_row(name, found, f"{detector}, {setting}", settings[setting]))
    for name, found in fixed.items():
        closest = min(ours, key=lambda knob: abs(ours[knob].of("U") - found.of("U")))
        paired.append(paired_row(closest, ours[closest], name, found))
    return (
        f"The same {len(labelled.names)} histories, the same protocol: rerun every night on the history up to that "
        "night (all of it, or the last nights where so stated); a change point is reported when first seen at least "
        f"{AGE} nights old and not within {NEAR} nights of one reported before. Settings at equal U: that of a grid "
        "with the smallest U that is not below ours, so theirs has the advantage. Flat: tonight against the median of "
        "the last 7 nights, once an excursion.\n\n"
        f"{table([head, *unique(rows)])}\n{table(paired)}"
    )


def run(rivals: Rivals, labelled: evalkit.Data, detector: str, settings: dict[str, float]) -> Scored:
    points, _ = rivals.replay(detector, settings, AGE, [labelled.v[s] for s in labelled.names])
    return score(labelled, {s: reported_once(p, NEAR) for s, p in zip(labelled.names, points, strict=True)})


def tuned_rivals(rivals: Rivals, labelled: evalkit.Data) -> dict[str, Found]:
    """Per detector its settings, by their names."""
    return {
        f"otava 0.8, last {OTAVA_NIGHTS} nights": {
            f"p {p:g}, .5 %": run(rivals, labelled, "otava", {"p": p, "magnitude": MAGNITUDE, "nights": OTAVA_NIGHTS})
            for p in P_VALUES
        },
        f"ruptures PELT, last {PELT_NIGHTS} nights": {
            f"penalty {penalty}": run(rivals, labelled, "pelt", {"penalty": penalty, "nights": PELT_NIGHTS})
            for penalty in PENALTIES
        },
    }


def equal_rate(settings: Found, unconfirmed: float) -> str:
    """The name of the setting whose rate is the smallest that is not below; of the largest where all are below."""
    not_below = [name for name, found in settings.items() if found.of("U") >= unconfirmed]
    if not_below:
        return min(not_below, key=lambda name: settings[name].of("U"))
    return max(settings, key=lambda name: settings[name].of("U"))


def paired_row(name: str, ours: Scored, their_name: str, theirs: Scored) -> list[str]:
    differences = [difference(ours, theirs, figure) for figure in ("blind", "F1")]
    marks = ["" if interval[0] > 0 else " **not above 0**" for _, interval in differences]
    return [
        name,
        their_name,
        f"{ours.of('U'):.2f}, {theirs.of('U'):.2f}",
        *(
            with_interval(value, interval, 3, "+") + mark
            for (value, interval), mark in zip(differences, marks, strict=True)
        ),
    ]


def unique(rows: list[list[str]]) -> list[list[str]]:
    return list({row[0]: row for row in rows}.values())
