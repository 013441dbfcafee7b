"""What ranks before what on the first nights."""

import numpy as np
import pytest

from baselines.screening.evidence import drift_evidence, step_evidence


def evidence(tail, sd=0.01, level=60, seed=1, began=0):
    logs = np.concatenate([np.random.default_rng(seed).normal(0, sd, level), tail])[None]
    return step_evidence(logs, np.array([1.2 * sd]), np.array([began]))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("nights", [1, 2, 5, 14])
def test_a_step_of_any_of_the_last_nights_is_seen_with_its_size_both_ways(sign, nights):
    found = evidence(np.full(nights, sign * 0.1))
    assert found.nights[0] == nights and found.effect[0] == pytest.approx(sign * 0.1, abs=0.005)
    assert found.score[0] > 4


def test_two_nights_say_more_than_one_that_is_further_off():
    assert evidence([0.1, 0.1]).score[0] > evidence([0.3]).score[0]
    assert evidence([0.3]).score[0] < 1.7 * evidence([0.1]).score[0], "the tail is heavy"


def test_nights_before_the_current_level_say_nothing():
    stepped = np.concatenate([np.full(40, 0.5), np.random.default_rng(2).normal(0, 0.01, 20)])[None]
    scale = np.array([0.012])
    assert step_evidence(stepped, scale, np.array([40])).score[0] < 4
    assert step_evidence(stepped, scale, np.array([0])).score[0] > 10
    assert step_evidence(stepped, scale, np.array([58])).score[0] == -np.inf


def test_a_level_of_few_nights_says_less():
    few = evidence([0.05], level=4).score[0]
    assert 0 < few < evidence([0.05], level=60).score[0]


def test_a_slow_drift_is_told_by_a_line_and_a_step_is_not():
    generator = np.random.default_rng(3)
    scale, began = np.array([0.006]), np.array([0])
    drift = (np.arange(60) * 0.0005 + generator.normal(0, 0.005, 60))[None]
    found = drift_evidence(drift, scale, began)
    assert found.score[0] > 5 and found.effect[0] == pytest.approx(0.0295, abs=0.006)
    flat = generator.normal(0, 0.005, (200, 60))
    assert (drift_evidence(flat, np.full(200, 0.006), np.zeros(200, dtype=int)).score > 5).mean() < 0.02
    assert drift_evidence(flat[:, :19], np.full(200, 0.006), np.zeros(200, dtype=int)).score.max() == -np.inf


def test_noise_alone_is_hardly_ever_a_hundred_to_one():
    flat = np.random.default_rng(4).normal(0, 0.01, (2000, 60))
    found = step_evidence(flat, np.full(2000, 0.012), np.zeros(2000, dtype=int))
    assert (found.score > np.log(100)).mean() < 0.05
