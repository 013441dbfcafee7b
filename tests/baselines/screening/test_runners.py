"""Nights of runners that take turns, as one of them would have had them."""

import numpy as np
import pytest

from baselines.screening.runners import on_one_runner
from baselines.screening.shifts import KNOBS, replay


def turns(seed, nights=60, offset=0.01, sd=0.002, step=0.0, at=40):
    noise = np.random.default_rng(seed).normal(0, sd, nights)
    runners = ["ab"[night % 2] for night in range(nights)]
    logs = noise + np.where(np.arange(nights) % 2, offset, 0.0) + np.where(np.arange(nights) >= at, step, 0.0)
    return logs, runners


def test_the_offset_of_a_runner_is_taken_off_and_the_newest_runner_stays_as_it_is():
    logs, runners = turns(1)
    aligned = on_one_runner(logs, runners)
    assert runners[-1] == "b"
    assert aligned[1::2] == pytest.approx(logs[1::2])
    assert np.median(aligned[::2]) == pytest.approx(np.median(logs[1::2]), abs=0.001)
    assert aligned.std() < 0.5 * logs.std()


def test_a_step_of_the_build_stays_and_is_found_where_the_runners_hid_it():
    logs, runners = turns(2, step=0.006)
    aligned = on_one_runner(logs, runners)
    assert np.median(aligned[40:]) - np.median(aligned[:40]) == pytest.approx(0.006, abs=0.0015)
    assert replay([logs], KNOBS["default"]) == [[]]
    (shift,) = replay([aligned], KNOBS["default"])[0]
    assert abs(shift.onset - 40) <= 1


def test_machines_that_are_new_every_night_and_nights_of_unknown_runners_are_taken_as_they_are():
    logs, _ = turns(3)
    assert on_one_runner(logs, [f"host{night}" for night in range(60)]) == pytest.approx(logs)
    assert on_one_runner(logs, [""] * 59 + ["a"]) == pytest.approx(logs)
    assert on_one_runner(logs[:0], []).shape == (0,)


def test_a_runner_that_was_there_for_a_few_nights_gets_no_offset():
    logs, _ = turns(4, offset=0.0)
    runners = ["a"] * 30 + ["b"] * 3 + ["a"] * 27
    assert on_one_runner(logs, runners) == pytest.approx(logs)
