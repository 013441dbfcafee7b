"""The three knobs, night by night on the labelled histories, against their floors."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import evalkit
import numpy as np
from markdown_page import table, verdict, with_interval
from scores import Scored, rate_interval, reports_of, sandmark, score

from baselines.screening.hindsight import segment_again
from baselines.screening.shifts import KNOBS, replay

CONTEXT = 80  # nights before a window that was looked at by eye, as evalkit loads them
LARGE = 0.02  # a report by eye's measure: on noisy GPU histories smaller steps are not told apart by eye
SHARED, NEAR = 0.2, 2  # a report is lone where fewer of the machine's series report within so many nights


@dataclass(frozen=True)
class Floor:
    unconfirmed: float
    blind: float
    f1: float
    delay: tuple[int, int]
    same_code: float | None
    by_eye: float


FLOORS = {
    "strict": Floor(0.5, 0.79, 0.90, (5, 11), 1.8, 0.85),
    "default": Floor(1.0, 0.85, 0.88, (4, 9), 3.5, 0.85),
    "sensitive": Floor(2.0, 0.87, 0.85, (3, 8), None, 0.85),
}
LONE_FLOOR = 1.0


def measure(data: Path, cache: Path) -> str:
    labelled, same_code = sandmark(data), evalkit.load(str(data), "aa")
    by_eye, by_eye_histories = load_by_eye(data)
    head = ["knob", "U", "blind", "blind .5-1 / 1-2 / 2-5 / >= 5 %", "F1", "delay", "reports a year"]
    rows = [head]
    other = [["knob", "same code: reports a series-year", "lone ones", "by eye, reports >= 2 %: F1"]]
    for name, knob in KNOBS.items():
        floor = FLOORS[name]
        found = score(labelled, reports_of(labelled.names, replay([labelled.y[s] for s in labelled.names], knob)))
        rows += [measured_row(name, found), floor_row(floor, found)]
        at_once = reports_of(labelled.names, segment_again([labelled.y[s] for s in labelled.names], knob))
        rows.append(measured_row(f"{name}, with hindsight", score(labelled, at_once)))
        shifts = replay([same_code.y[s] for s in same_code.names], knob)
        other += other_rows(name, floor, same_code, shifts, score(by_eye, by_eye_reports(by_eye_histories, knob)))
    years = sum(labelled.years.values())
    return (
        f"{len(labelled.names)} series, {years:.0f} series-years. U: reports a series-year that the second, "
        "independent run of the same nights does not confirm. blind: recall on labels made from that second run alone. "
        "F1: within 5 nights of a label. delay: median / 90 % quantile of the nights from the label to the report. "
        "Brackets: 95 % bootstrap over series. With hindsight: all nights at once, each knowing those after it; delays "
        f"say nothing of it, as all is reported in the last night.\n\n{table(rows)}\n"
        f"The same release every night ({len(same_code.names)} series), and series labelled by eye "
        f"({len(by_eye.names)}); lone: fewer than {SHARED:.0%} of the machine's series shift within {NEAR} "
        f"nights.\n\n{table(other)}"
    )


def measured_row(name: str, found: Scored) -> list[str]:
    median, late = found.delay()
    return [
        name,
        with_interval(found.of("U"), found.interval("U")),
        with_interval(found.of("blind"), found.interval("blind"), 3),
        found.blind_by_size(),
        with_interval(found.of("F1"), found.interval("F1"), 3),
        f"{median:.0f} / {late:.0f}",
        with_interval(found.of("rep_y"), found.interval("rep_y"), 1),
    ]


def floor_row(floor: Floor, found: Scored) -> list[str]:
    return [
        "floor",
        f"<= {floor.unconfirmed} {verdict(found.of('U') <= floor.unconfirmed)}",
        f">= {floor.blind} {verdict(found.of('blind') >= floor.blind)}",
        "",
        f">= {floor.f1} {verdict(found.of('F1') >= floor.f1)}",
        f"{floor.delay[0]} / {floor.delay[1]} {verdict(all(np.asarray(found.delay()) <= floor.delay))}",
        "",
    ]


def other_rows(name, floor, same_code, shifts, by_eye) -> list[list[str]]:
    years = np.array([same_code.years[s] for s in same_code.names])
    count = np.array([len(found) for found in shifts])
    all_rate, all_interval = rate_interval(count, years)
    lone_rate, lone_interval = rate_interval(lone_reports(same_code, shifts), years)
    limit, eye = floor.same_code, floor.by_eye
    return [
        [
            name,
            with_interval(all_rate, all_interval),
            with_interval(lone_rate, lone_interval),
            with_interval(by_eye.of("F1"), by_eye.interval("F1")),
        ],
        [
            "floor",
            "" if limit is None else f"<= {limit} {verdict(all_rate <= limit)}",
            f"<= {LONE_FLOOR:g} {verdict(lone_rate <= LONE_FLOOR)}",
            f">= {eye} {verdict(by_eye.of('F1') >= eye)}",
        ],
    ]


def lone_reports(same_code: evalkit.Data, shifts) -> np.ndarray:
    """Per series, how many of its reports few others of the machine share, by the night of the onset."""
    nights = {
        name: np.array([same_code.night[name][shift.onset] for shift in found], dtype=int)
        for name, found in zip(same_code.names, shifts, strict=True)
    }
    lone = []
    for name in same_code.names:
        fellows = [nights[other] for other in same_code.names if same_code.host[other] == same_code.host[name]]
        shares = [np.mean([np.any(np.abs(fellow - night) <= NEAR) for fellow in fellows]) for night in nights[name]]
        lone.append(sum(value < SHARED for value in shares))
    return np.array(lone)


def load_by_eye(data: Path) -> tuple[evalkit.Data, dict[str, tuple[int, np.ndarray]]]:
    """The judge's view, and per series how many nights it leaves out at the start, and the whole history."""
    by_eye = evalkit.load(str(data), "visual")
    points = defaultdict(list)
    labelled = evalkit.rows(f"{data}/visual/series.csv")
    for dataset in sorted({row["dataset"] for row in labelled}):
        with open(data / "histories" / f"{dataset}.csv", newline="") as lines:
            for row in csv.DictReader(lines):
                points[row["series"]].append((int(row["i"]), float(row["value"])))
    histories = {}
    for row in labelled:
        values = np.array([value for _, value in sorted(points[row["series"]])])
        histories[row["series"]] = (max(0, int(row["from_i"]) - CONTEXT), np.log(np.maximum(values, 1e-12)))
    return by_eye, histories


def by_eye_reports(histories, knob) -> dict[str, list[tuple[int, int]]]:
    shifts = replay([logs for _, logs in histories.values()], knob)
    found = reports_of(list(histories), shifts, least=LARGE)
    return {
        name: [(onset - left_out, reported - left_out) for onset, reported in found[name] if onset >= left_out]
        for name, (left_out, _) in histories.items()
    }
