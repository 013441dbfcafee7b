"""The level before a window, the score of the window, and the arrays that both are computed from."""

from dataclasses import replace

import numpy as np
import pytest
from small_fleet import calm, stepped

from baselines.confirming.levels import ENOUGH_NIGHTS, LEVEL_NIGHTS, Rows, level_before, moved, moved_tonight
from baselines.confirming.seen import SMALLEST_NOISE, SMALLEST_PAIR_SD, night_noise, pair_sds, right_aligned

NAN = np.nan


def rows_of(logs, *, noise: float = 0.002, **others) -> Rows:
    logs = np.atleast_2d(np.asarray(logs, dtype=float))
    count = len(logs)
    fixed = {
        "noise": np.full(count, noise),
        "pair_sd": np.full(count, 0.003),
        "segment": np.zeros(count, dtype=np.int64),
        "began": np.zeros(count, dtype=np.int64),
        "prior": np.full(count, NAN),
        "weight": np.zeros(count),
    }
    given = {name: np.atleast_1d(value) for name, value in others.items()}
    return Rows(logs=logs, **(fixed | given))


def test_values_are_aligned_to_tonight_and_know_their_night():
    logs, nights = right_aligned(np.array([[1.0, NAN, 2.0, NAN], [NAN, 3.0, 4.0, 5.0], [NAN, NAN, NAN, NAN]]))
    np.testing.assert_array_equal(logs, [[NAN, NAN, 1, 2], [NAN, 3, 4, 5], [NAN] * 4])
    np.testing.assert_array_equal(nights, [[-1, -1, 0, 2], [-1, 1, 2, 3], [-1] * 4])


def test_infinite_values_are_missing_ones():
    logs, nights = right_aligned(np.array([[-np.inf, 1.0, np.inf, 2.0]]))
    assert logs[0, 2:].tolist() == [1, 2] and nights[0].tolist() == [-1, -1, 1, 3]


def test_the_level_is_the_median_of_forty_nights_and_a_spike_is_none():
    logs = np.concatenate([np.full(30, 9.0), np.arange(LEVEL_NIGHTS) / 1000.0, [5.0]])
    level, known = level_before(rows_of(logs), 1)
    assert (level[0], known[0]) == (pytest.approx(0.0195), LEVEL_NIGHTS)
    spiked = logs.copy()
    spiked[-2] = 7.0
    assert level_before(rows_of(spiked), 1)[0][0] == pytest.approx(0.0195)


def test_the_level_begins_where_the_segment_and_the_environment_did():
    logs = np.concatenate([np.zeros(20), np.full(20, 0.03)])
    assert level_before(rows_of(logs, began=20), 1)[0][0] == pytest.approx(0.03)
    level, known = level_before(rows_of(logs, began=38), 1)
    assert np.isnan(level[0]) and known[0] == 1, "one night alone is no level"
    assert np.isfinite(level_before(rows_of(logs, began=36), 1)[0][0])


def test_few_nights_lean_on_what_is_known_from_before():
    logs = np.concatenate([np.zeros(20), np.full(20, 0.004)])
    level, known = level_before(rows_of(logs, began=37, prior=0.0, weight=4.0), 1)
    assert (level[0], known[0]) == (pytest.approx(2 * 0.004 / 6), 6)
    level, known = level_before(rows_of(logs, began=39, prior=0.001, weight=4.0), 1)
    assert (level[0], known[0]) == (pytest.approx(0.001), 4), "no night of its own yet"
    enough = rows_of(logs, began=39 - ENOUGH_NIGHTS, prior=0.0, weight=4.0)
    assert level_before(enough, 1)[0][0] == pytest.approx(0.004)


def test_one_night_far_off_says_little_of_a_level_of_few_nights():
    logs = np.concatenate([np.zeros(37), [0.0, 1.0, 0.0]])
    level, _ = level_before(rows_of(logs, began=37, prior=0.0, weight=4.0), 1)
    assert 0 < level[0] <= 2.5 * 0.002 / 6 + 1e-12


@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 10, 14])
def test_a_step_scores_most_over_the_nights_since_it(window):
    logs = stepped(calm(1, 60, 0.0004), [0], -window, 0.003)
    found = moved(rows_of(logs))
    assert found.window[0] == window and found.score[0] > 1
    assert found.effect[0] == pytest.approx(np.log(1.003), abs=1e-3)
    assert moved(rows_of(-logs)).effect[0] == pytest.approx(-found.effect[0])
    assert moved(rows_of(-logs)).score[0] == pytest.approx(found.score[0])


def test_the_score_of_a_lone_night_grows_to_nine_standard_deviations_and_not_beyond():
    calm_nights = np.zeros(41)

    def score(distance: float) -> float:
        logs = calm_nights.copy()
        logs[-1] = distance * 0.002
        return float(moved(rows_of(logs)).score[0])

    scores = [score(distance) for distance in (1, 3.4, 3.5, 5, 9, 20, 3000)]
    assert scores == sorted(scores) and scores[-1] == scores[-2] == scores[-3]
    assert score(9) == pytest.approx(0.75 * 9 / np.sqrt(1 + 1.5 / 40))


def test_no_window_reaches_before_the_segment():
    logs = stepped(np.zeros((1, 60)), [0], -10, 0.01)
    since = rows_of(logs, segment=50, began=50, prior=np.log(1.01), weight=4.0)
    assert moved(since).score[0] < 0.1
    before = replace(since, segment=np.array([45]), began=np.array([45]), prior=np.array([0.0]))
    assert moved(before).score[0] > 3.5


def test_what_has_no_level_has_no_score():
    found = moved(rows_of([[NAN] * 20, [NAN] * 19 + [1.0], [NAN] * 17 + [1.0, 1.0, 1.0]]))
    assert (found.score == -np.inf).all() and np.isnan(found.level).all()
    assert np.isnan(moved_tonight(rows_of([[NAN] * 20]))).all()


def test_tonight_does_not_make_its_own_noise_and_constant_series_have_the_smallest():
    logs = calm(3, 60, 0.01)
    logs[2] = 4.0
    before = night_noise(logs)
    logs[:2, -1] += 5
    assert before[0] == pytest.approx(0.01, rel=0.4)
    assert night_noise(logs) == pytest.approx(before, rel=0.1) and before[2] == SMALLEST_NOISE


def test_short_series_have_a_noise_as_soon_as_they_have_three_nights():
    aligned, _ = right_aligned(np.array([[NAN] * 8 + [1.0, 1.1], [NAN] * 7 + [1.0, 1.1, 1.0], [NAN] * 10]))
    noise = night_noise(aligned)
    assert np.isnan(noise[[0, 2]]).all() and noise[1] > SMALLEST_NOISE


def test_the_spread_of_a_pair_is_that_of_two_processes():
    rng = np.random.default_rng(3)
    values = rng.normal(0, 0.01, (4, 150, 3))
    values[2] = 0.0
    variances = np.var(values, axis=2, ddof=1)
    variances[1, ::2] = NAN
    sds = pair_sds(variances, 3)
    assert sds[[0, 1, 3]] == pytest.approx(np.sqrt(2) * 0.01, rel=0.25)
    assert sds[2] == SMALLEST_PAIR_SD, "processes that all give the same"
    two = pair_sds(np.var(rng.normal(0, 0.01, (1, 400, 2)), axis=2, ddof=1), 2)
    assert two[0] == pytest.approx(np.sqrt(2) * 0.01, rel=0.25)
