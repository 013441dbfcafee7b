"""Draws the pictures of confirming in docs/detection.md, by the code that the nightly runs, on made-up numbers.

    PYTHONPATH=. python tests/bench/confirming_pictures.py docs/pictures

needs matplotlib (the extra `pictures`). The same numbers come out every time, and so do the files.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from baselines.confirming.bench import Values
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.seen import SeriesKey, night_noise
from baselines.confirming.state import ClassState, Interval
from baselines.confirming.trials import Trial
from baselines.fleet_replay import FleetBench
from torchbenchmark.pictures import figure_of
from torchbenchmark.statistics.sign_e_process import Decision, e_path

sys.path.append(str(Path(__file__).parents[1]))
from small_fleet import CHANNEL, SmallFleet, seen_of, when

RULES = Rules()
CANDIDATES, PAIR_SD, CHANGE = 10, 0.01, 0.02
NOTHINGS = 20
NIGHTS, DRIVER, STEP = 75, 40, 58  # nights, the one of a new driver, and the build that slows one test
SHOWN, SLOWED_BY = 3, 0.02  # the test that is drawn, and what that build does to it
MOVED_BY = 0.03  # what the driver does to 24 of 40 tests
GREY, BLUE, RED, GREEN = "#7f8c8d", "#1f4e79", "#c0392b", "#1e8449"
INCHES = (9.0, 3.9)


# --- pairs ------------------------------------------------------------------------------------------------------------


def tried(ratios: np.ndarray) -> tuple[np.ndarray, Decision]:
    """(the capital after each pair measured, beginning with 1, what it came to) of one of several candidates."""
    key = SeriesKey("test_eval[resnet50-cuda-eager]", CHANNEL)
    trial = Trial(key, "regression", "base", "head", PAIR_SD, CANDIDATES)
    decision = trial.judged(list(ratios), RULES)
    path = e_path(ratios[: decision.pairs], margin=RULES.margin, bets=RULES.bets, pair_sd=PAIR_SD)
    return np.concatenate([[1.0], path]), decision


def draw_pairs(axes: Any) -> None:
    rng = np.random.default_rng(1)
    change, found = tried(CHANGE + rng.normal(0, PAIR_SD, RULES.most_pairs))
    assert found.verdict == "confirmed"
    futile = 0
    for number in range(NOTHINGS):
        path, decision = tried(rng.normal(0, PAIR_SD, RULES.most_pairs))
        futile += decision.verdict == "futile"
        label = f"nothing, {NOTHINGS} times" if not number else None
        axes.plot(path, color=GREY, linewidth=0.8, alpha=0.7, label=label)
        axes.plot(len(path) - 1, path[-1], "x", color=GREY, markersize=5)
    axes.plot(change, color=RED, linewidth=2, label=f"slower by {CHANGE:.0%}, pairs spread by {PAIR_SD:.0%}")
    axes.plot(found.pairs, change[-1], "o", color=RED)
    axes.annotate(
        f"confirmed after {found.pairs} pairs",
        (found.pairs, change[-1]),
        xytext=(8, 6),
        textcoords="offset points",
        fontsize=8,
        color=RED,
    )
    axes.axhline(found.threshold, color=BLUE, linestyle="--", linewidth=1)
    axes.annotate(
        f"K / 0.01, of K = {CANDIDATES} candidates",
        (0, found.threshold),
        xytext=(6, 4),
        textcoords="offset points",
        fontsize=8,
        color=BLUE,
    )
    axes.axhline(1.0, color="black", linewidth=0.5)
    axes.set_yscale("log")
    axes.set_xlim(0, RULES.most_pairs + 0.5)
    axes.set_ylim(0.02, 2e4)
    axes.set_xlabel("pairs of fresh zygotes")
    axes.set_ylabel("capital of the bets (e-value)")
    finish(axes, f"Evidence, pair by pair: {futile} of {NOTHINGS} without a change are given up (x)")


# --- a new environment ------------------------------------------------------------------------------------------------


class Recording:
    """A bench that remembers what the bridging runs measured."""

    def __init__(self, bench: FleetBench) -> None:
        self.bench, self.bridges = bench, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bench, name)

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        self.bridges.append(self.bench.again(tests, build, processes))
        return self.bridges[-1]


@dataclass
class Story:
    """What the nights of a small class came to."""

    tests: Sequence[str]
    logs: np.ndarray  # (tests, nights)
    bridges: list[Mapping[str, Values]]  # of the night of the driver: the small run, and the whole one
    shifts: Mapping[str, float]
    interval: Interval
    filed: int  # the night


def live_through() -> Story:
    moved = {"night": DRIVER, "size": MOVED_BY, "tests": range(24)}
    step = {"build": STEP, "size": SLOWED_BY, "tests": [SHOWN]}
    fleet = SmallFleet({"nights": NIGHTS, "drivers": [moved], "steps": [step]}, seed=3)
    state, bridges, filed = ClassState(), [], []
    for night in range(NIGHTS):
        bench = Recording(FleetBench(fleet, night, seed=3))
        outcome = run_night(seen_of(fleet, night), state, bench, RULES)
        bridges += bench.bridges
        filed += outcome.filed
    note, slower = filed
    assert (note.kind, note.night, slower.kind) == ("environment", when(DRIVER), "regression")
    return Story(
        tests=fleet.tests,
        logs=seen_of(fleet, NIGHTS - 1).logs,
        bridges=bridges,
        shifts=state.eras[-1].shifts,
        interval=slower.intervals[0],
        filed=(slower.night - when(0)).days,
    )


def draw_series(axes: Any, story: Story) -> None:
    test = story.tests[SHOWN]
    level = float(np.median(story.logs[SHOWN, :DRIVER]))
    shift = story.shifts[f"{test} {CHANNEL}"]
    bridged = 100 * np.expm1(np.log(story.bridges[1][test][CHANNEL]) - level)
    axes.plot(100 * np.expm1(story.logs[SHOWN] - level), ".", color=GREY, markersize=4, label="night")
    axes.plot([DRIVER] * len(bridged), bridged, "D", color=GREEN, markersize=4, label="last good build, bridging")
    levels = (
        (0, DRIVER, 0.0),
        (DRIVER, story.filed - 1, shift),
        (story.filed - 1, NIGHTS, shift + math.log1p(story.interval.effect)),
    )
    for first, last, height in levels:
        ends = (first - 0.5, last - 0.5)
        axes.plot(ends, [100 * math.expm1(height)] * 2, color=BLUE, linewidth=2, label=None if first else "level")
    axes.annotate(
        "",
        (DRIVER - 0.5, 100 * math.expm1(shift)),
        (DRIVER - 0.5, 0),
        arrowprops={"arrowstyle": "->", "color": GREEN, "linewidth": 1.5},
    )
    axes.annotate(
        f"shift {math.expm1(shift):+.1%}:\none note",
        (DRIVER - 1.5, 50 * math.expm1(shift)),
        ha="right",
        fontsize=8,
        color=GREEN,
    )
    one = story.interval
    axes.axvline(story.filed, color=RED, linestyle="--", linewidth=1)
    axes.annotate(
        f"filed: {one.effect:+.1%}\n[{one.low:+.1%}, {one.high:+.1%}]",
        (story.filed - 0.7, 0.5),
        ha="right",
        fontsize=8,
        color=RED,
    )
    axes.set_xlim(-1, NIGHTS)
    axes.set_xlabel("night")
    axes.set_ylabel("off the first level, %")
    finish(axes, f"One test: a driver in night {DRIVER}, a build in night {STEP}")


def draw_bridge(axes: Any, story: Story) -> None:
    """The small bridging run: how far the old build is off its own level, in deviations of a night."""
    before = story.logs[:, :DRIVER]
    rows = [story.tests.index(test) for test in story.bridges[0]]
    measured = np.log([np.median(story.bridges[0][story.tests[row]][CHANNEL]) for row in rows])
    distances = (measured - np.median(before[rows], axis=1)) / night_noise(story.logs[rows, : DRIVER + 1])
    off = np.abs(distances) > 3
    axes.axhspan(-3, 3, color=GREY, alpha=0.15, linewidth=0, label="within 3 deviations")
    axes.plot(np.flatnonzero(~off), distances[~off], "D", color=GREY, markersize=4)
    axes.plot(np.flatnonzero(off), distances[off], "D", color=GREEN, markersize=4, label="off its level")
    axes.set_xlabel(f"{len(rows)} tests of the last good build")
    axes.set_ylabel("off their own level, deviations")
    axes.set_xticks([])
    finish(axes, f"Night {DRIVER}: {off.mean():.0%} off, over 25 %:\nthe environment")


# --- files ------------------------------------------------------------------------------------------------------------


def finish(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(fontsize=7.5, frameon=False, loc="best")


def draw(folder: Path, suffix: str) -> list[Path]:
    story = live_through()
    paths = []
    for name, widths, drawn in (
        ("pairs", [1], [draw_pairs]),
        ("bridging", [2.2, 1], [lambda axes: draw_series(axes, story), lambda axes: draw_bridge(axes, story)]),
    ):
        paths.append(folder / f"{name}{suffix}")
        with figure_of(paths[-1], INCHES, name) as figure:
            places = np.atleast_1d(figure.subplots(1, len(widths), width_ratios=widths))
            for axes, part in zip(places, drawn, strict=True):
                part(axes)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--png", action="store_true", help="PNG instead of SVG")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for path in draw(given.folder, ".png" if given.png else ".svg"):
        print(path)


if __name__ == "__main__":
    main()
