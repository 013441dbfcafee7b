"""The running scale: what it reads, what does not move it, and that it knows no later night."""

import numpy as np
import pytest

from baselines.screening.noise import READS, SMALLEST, running_scale


def noise(seed, nights=400, sd=0.01, rows=5):
    return np.random.default_rng(seed).normal(0, sd, (rows, nights))


def test_it_reads_what_it_says_of_normal_noise():
    scales = running_scale(noise(1, rows=200, nights=200))
    assert np.median(scales[:, 100:]) == pytest.approx(READS * 0.01, rel=0.03)


def test_no_spike_no_step_and_few_noisy_nights_move_it():
    quiet = noise(2)
    plain = running_scale(quiet)[:, 200]
    for change in ("spike", "step", "noisy"):
        logs = quiet.copy()
        if change == "spike":
            logs[:, 190] += 3
        elif change == "step":
            logs[:, 190:] += 0.5
        else:
            logs[:, 180:190] *= 30
        assert running_scale(logs)[:, 200] == pytest.approx(plain, rel=0.5), change


def test_a_night_knows_no_later_one():
    logs = noise(3, nights=90)
    whole = running_scale(logs)
    for nights in (1, 2, 3, 7, 60, 61, 89):
        assert np.array_equal(running_scale(logs[:, :nights]), whole[:, :nights])


def test_it_is_never_below_its_floor_which_may_differ_by_series():
    constant = np.zeros((2, 30))
    assert (running_scale(constant) == SMALLEST).all()
    floors = running_scale(constant, np.array([[0.001], [0.02]]))
    assert (floors[0] == 0.001).all() and (floors[1] == 0.02).all()
