"""What a night's screen says in the report and on the terminal."""

from collections.abc import Iterator

import numpy as np
import pytest
from night_factory import A, equal_weights, night_of

from baselines.policy import Policy
from baselines.report import Report
from baselines.report_table import print_report
from baselines.screening.shifts import KNOBS, replay
from baselines.suspects import LEAST_SCORE
from regression_detector import detect, load_policy
from torchbenchmark.terminal import console

DEFAULT: Policy = load_policy("default")


def last_night(logs: np.ndarray, tests: tuple[str, ...] = (A,), channel: str = "cpu_time") -> Report:
    """The report of the last of the nights whose values are given as logarithms, the same for all tests."""
    nights = [night_of(day, {test: {channel: float(np.exp(log))} for test in tests}) for day, log in enumerate(logs)]
    return detect(nights[-1], nights[:-1], DEFAULT, weights=equal_weights)


def small_step() -> np.ndarray:
    """A step as large as the noise of a night, up to the night that reports it: sure of it, but no hundred to one."""
    logs = np.random.default_rng(4).normal(0, 0.01, 80)
    logs[50:] += 0.01
    return logs[:72]


def drifts() -> Iterator[Report]:
    """The nights of some drifts that report them as level shifts."""
    for seed in range(6):
        logs = np.random.default_rng(seed).normal(0, 0.01, 80) + np.clip(np.arange(80) - 40, 0, 20) * 0.002
        (shifts,) = replay([logs], KNOBS["default"])
        for shift in shifts:
            yield last_night(logs[: shift.reported + 1])


def test_a_level_shift_reported_tonight_is_a_suspect_however_small_its_score():
    (suspect,) = last_night(small_step()).screen.suspects
    assert suspect.reported and suspect.score < LEAST_SCORE
    assert suspect.why.endswith("; reported tonight as a level shift")


def test_the_night_before_it_is_reported_it_is_none():
    assert last_night(small_step()[:-1]).screen.suspects == ()


def test_a_drift_that_is_reported_tonight_says_so():
    found = [suspect for report in drifts() for suspect in report.screen.suspects if suspect.reported]
    drifted = [suspect for suspect in found if "has drifted by" in suspect.why]
    assert drifted, "none of the drifts was more of a line than of a step when it was reported"
    assert all(suspect.why.endswith("; reported tonight as a level shift") for suspect in found)


@pytest.mark.parametrize(
    ("count", "in_json"), [(12, "all"), (60, "the first 50, and the scores of all")], ids=["few", "more than are kept"]
)
def test_the_terminal_says_how_many_suspects_there_are_and_what_the_json_has_of_them(capsys, count, in_json):
    tests = tuple(f"test_eval[m{index}-cpu-eager]" for index in range(count))
    report = last_night(small_step(), tests)
    assert len(report.screen.suspects) == min(count, 50) and len(report.screen.scores) == count
    print_report(report)
    shown = capsys.readouterr().out
    assert f"screen of {count} series: {count} suspects" in shown
    assert f"and {count - 10} more (--json has {in_json})" in shown


@pytest.mark.parametrize(("factor", "direction"), [(1.2, "slower, or more"), (1 / 1.2, "faster, or less")])
def test_tests_that_need_more_memory_together_are_not_said_to_be_slower(factor, direction):
    logs = np.random.default_rng(1).normal(0, 0.01, 24)
    logs[-1] += np.log(factor)
    tests = tuple(f"test_eval[m{index}-cpu-eager]" for index in range(10))
    (reason,) = last_night(logs, tests, "cpu_memory").screen.environment
    assert reason == f"10 of 10 tests moved alike ({direction}) within 2 nights"


@pytest.mark.parametrize("columns", [100, 200])
def test_a_narrow_terminal_shows_the_judged_channel_in_lines_that_are_not_wrapped(capsys, monkeypatch, columns):
    monkeypatch.setattr(console, "_force_terminal", True)
    monkeypatch.setattr(console, "_width", columns)
    nights = [night_of(day, {A: {"cpu_time": 0.0123, "latency": 1.0}}) for day in range(3)]
    print_report(detect(nights[-1], nights[:-1], DEFAULT, weights=equal_weights))
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f" {A}")]
    assert "12.3 ms" in row and ("latency" in row) == (columns == 200)
    assert len(row) <= columns
