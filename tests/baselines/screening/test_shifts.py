"""What is reported when: night by night, once, and from no later night."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baselines.screening.screen import screen_night
from baselines.screening.shift_test import REDATED
from baselines.screening.shifts import (
    FEWEST_AFTER,
    FEWEST_BEFORE,
    FULL_AFTER,
    KNOBS,
    WINDOW,
    last_reports,
    replay,
    reports_of_night,
    window_scales,
)

DEFAULT = KNOBS["default"]


def level(seed, nights=120, sd=0.005):
    return np.random.default_rng(seed).normal(0, sd, nights)


def with_step(logs, at, size):
    return logs + np.where(np.arange(len(logs)) >= at, np.log1p(size), 0.0)


def reports(logs, knob=DEFAULT):
    return replay([np.asarray(logs, dtype=float)], knob)[0]


@pytest.mark.parametrize("size", [0.03, -0.03, 0.2, -0.5])
def test_a_step_is_reported_once_soon_and_where_it_is(size):
    (shift,) = reports(with_step(level(1), 60, size))
    assert abs(shift.onset - 60) <= 1 and shift.onset_low <= 60 <= shift.onset_high
    assert shift.onset + 2 <= shift.reported <= 66
    assert shift.low < np.log1p(size) < shift.high
    assert shift.score >= DEFAULT.height


def test_what_was_reported_is_the_new_level_and_its_end_is_reported_too():
    there_and_back = with_step(with_step(level(2), 50, 0.05), 80, 1 / 1.05 - 1)
    first, second = reports(there_and_back)
    assert first.effect > 0 > second.effect
    assert (abs(first.onset - 50), abs(second.onset - 80)) <= (1, 1)


@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize("factor", [10, 0.1])
def test_a_night_that_is_far_off_alone_is_never_reported(knob, factor):
    plain = [level(seed) for seed in range(20)]
    spiked = [logs + np.where(np.isin(np.arange(120), (40, 77)), np.log(factor), 0.0) for logs in plain]
    found = replay(spiked, KNOBS[knob])
    assert all(abs(shift.effect) < 0.1 for one in found for shift in one)
    assert sum(map(len, found)) <= sum(map(len, replay(plain, KNOBS[knob]))) + 1


@pytest.mark.parametrize("sd", [0.0, 0.0005, 0.002])
def test_a_drift_is_reported_before_four_percent_though_it_fits_no_level(sd):
    drift = level(4, sd=sd) + np.clip(np.arange(120) - 59, 0, 20) * np.log1p(0.005)
    first = reports(drift)[0]
    assert 60 <= first.reported <= 66 and first.effect > 0


def test_constant_histories_and_short_ones_report_nothing():
    for nights in (0, 1, 2, 7, 8, 40):
        assert reports(np.zeros(nights)) == []
    assert replay([], DEFAULT) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize(
    "history",
    {
        "no night": [],
        "one night": [0.0],
        "two nights": [0.0, 1.0],
        "constant": np.zeros(400),
        "all equal but one": np.where(np.arange(400) == 200, 5.0, 0.0),
        "all equal but tonight": np.where(np.arange(400) == 399, 5.0, 0.0),
        "two modes in turn": np.tile([0.0, 0.1], 200),
        "the last bit differs": np.log(np.where(np.arange(400) % 3, 1.0, np.nextafter(1.0, 2.0))),
        "the smallest there are": np.log(np.tile([1, 3, 2, 7, 4], 80) * 5e-324),
    }.items(),
    ids=lambda item: item[0],
)
def test_odd_histories_report_nothing_and_warn_of_nothing(history, knob):
    logs = np.asarray(history[1], dtype=float)
    assert replay([logs], KNOBS[knob]) == [[]]
    found = screen_night([logs, level(1)], KNOBS[knob])
    assert (found[0] is None) == (len(logs) < 4) and found[1] is not None
    assert found[0] is None or not found[0].reported_tonight


@pytest.mark.filterwarnings("error")
def test_from_the_largest_number_to_the_smallest_is_a_shift_like_any_other():
    logs = np.log(np.repeat([1e308, 5e-324], 40))
    (shift,) = reports(logs)
    assert (shift.onset, shift.onset_low, shift.onset_high) == (40, 40, 40) and shift.effect == pytest.approx(
        -1453.6, abs=0.1
    )
    assert screen_night([logs[:43]], DEFAULT)[0].reported_tonight


def test_what_is_reported_next_is_nights_off():
    for seed in range(6):
        generator = np.random.default_rng(seed)
        logs = level(seed, 300) + np.repeat(generator.normal(0, 0.05, 60), 5)  # a new level every five nights
        found = reports(logs)
        assert len(found) > 20
        gaps = np.diff([shift.onset for shift in found])
        assert gaps.min() >= FEWEST_BEFORE - REDATED
        assert all(shift.reported - shift.onset + 1 >= FEWEST_AFTER for shift in found)


@pytest.mark.parametrize("nights", range(FEWEST_AFTER, FULL_AFTER + 3))
def test_the_fewer_nights_there_are_after_a_step_the_more_of_it_is_asked_for(nights):
    after, scale = np.arange(WINDOW) >= WINDOW - nights, 1e-3
    starts = np.where(after, WINDOW - nights, 0)[None]  # a path that has known the boundary since it was there
    for size in np.arange(1.0, 12.0, 0.02) * 1e-3:
        logs = np.where(after, size, 0.0)[None]
        found = reports_of_night(logs, np.full((1, WINDOW), scale), starts, WINDOW - 1, np.array([0]), DEFAULT)
        if found:
            break
    asked = {3: 1 + 4 / 3, 4: 2, 5: 1 + 2 / 3, 6: 1 + 1 / 3}.get(nights, 1) * DEFAULT.height
    error = np.sqrt(1.3 * scale**2 * (1 / 20 + 1 / nights) + 0.001**2 + (0.3 * scale) ** 2)
    assert size == pytest.approx(asked * error, rel=0.02)
    assert found[0][1].score == pytest.approx(DEFAULT.height, rel=0.02)


def test_two_modes_are_no_shifts():
    modes = np.random.default_rng(5).choice([0.0, 0.03], 300, p=[0.7, 0.3]) + level(5, 300, 0.002)
    assert len(reports(modes)) <= 1


def test_the_knobs_ask_for_less_and_less():
    logs = [with_step(level(seed, sd=0.01), 60, 0.012) for seed in range(40)]
    counts = [sum(map(len, replay(logs, KNOBS[name]))) for name in ("strict", "default", "sensitive")]
    assert counts == sorted(counts) and counts[0] < counts[-1]


def test_a_knob_that_asks_less_of_few_nights_reports_the_same_steps_earlier():
    logs = [with_step(level(seed, sd=0.005), 60, 0.03) for seed in range(40)]
    late, early = (
        [shift.reported for one in replay(logs, replace(DEFAULT, early=early)) for shift in one if shift.onset == 60]
        for early in (3, 6)
    )
    assert len(early) == len(late) > 30
    assert sum(early) < sum(late) and all(np.less_equal(early, late))


histories = st.lists(
    st.tuples(
        st.sampled_from(["level", "step", "spike", "drift", "constant", "modes"]),
        st.integers(3, 40),
        st.floats(-0.2, 0.2, allow_nan=False),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=histories, seed=st.integers(0, 1000), ticks=st.sampled_from([0.0, 0.01]), knob=st.sampled_from([*KNOBS]))
def test_what_a_night_reports_depends_on_no_later_night(parts, seed, ticks, knob):
    generator, height, logs = np.random.default_rng(seed), 0.0, []
    for kind, nights, size in parts:
        noise = np.zeros(nights) if kind == "constant" else generator.normal(0, 0.004, nights)
        height += size if kind == "step" else 0.0
        extra = {"drift": np.linspace(0, size, nights), "modes": generator.choice([0, size], nights)}.get(kind, 0.0)
        logs.append(height + noise + extra)
        if kind == "spike":
            logs[-1][nights // 2] += 20 * size
    history = np.concatenate(logs)
    if ticks:
        history = np.round(history / ticks) * ticks
    whole = reports(history, KNOBS[knob])
    for nights in range(1, len(history) + 1, 17):
        assert reports(history[:nights], KNOBS[knob]) == [shift for shift in whole if shift.reported < nights]


def test_before_the_oldest_boundary_of_a_window_come_no_newest_nights():
    logs, scales = np.zeros((1, WINDOW)), np.full((1, WINDOW), 1e-3)
    logs[:, -12:] = 0.05
    starts = np.where(np.arange(WINDOW) < 8, 0, 8)[None]  # a path with one boundary, at which nothing changes
    for last in (0, -30, -1000):
        assert reports_of_night(logs, scales, starts, WINDOW - 1, np.array([last]), DEFAULT) == []


def test_many_histories_of_any_lengths_at_once_are_each_as_alone():
    logs = [with_step(level(seed, nights), nights // 2, 0.04) for seed, nights in enumerate((3, 20, 90, 160, 400))]
    together = replay(logs, DEFAULT)
    assert together == [reports(one) for one in logs]
    assert [len(found) > 0 for found in together] == [False, True, True, True, True]


def test_the_window_alone_finds_the_last_report_again():
    for seed in range(10):
        logs = with_step(level(seed, nights=100), 30 + 6 * seed, 0.05)
        window = np.concatenate([np.full(WINDOW - 100, np.nan), logs])[None]
        (found,) = last_reports(window, window_scales(window), DEFAULT)
        assert [shift.moved_by(100 - WINDOW).onset for shift in found] == [shift.onset for shift in reports(logs)]


def test_a_night_screens_every_series_and_says_what_it_reports_tonight():
    at = 100
    stepped = with_step(level(11), at, 0.04)
    (shift,) = reports(stepped)
    tonight = stepped[: shift.reported + 1]
    found = screen_night([tonight, level(12)[: len(tonight)], np.zeros(2)], DEFAULT)
    assert found[2] is None
    assert found[0] is not None and found[0].reported_tonight and found[0].last_shift == shift
    assert found[0].effect == pytest.approx(np.log1p(0.04), abs=0.01) and found[0].score > 10
    assert found[1] is not None and not found[1].reported_tonight and found[1].score < found[0].score
    (later,) = screen_night([stepped[: shift.reported + 4]], DEFAULT)
    assert later is not None and later.last_shift == shift and not later.reported_tonight
    assert later.score < 5, "against its own level nothing has moved"
    assert screen_night([], DEFAULT) == []


@pytest.mark.parametrize("nights", [8, 10, 12, 40])
@pytest.mark.parametrize("size", [0.05, -0.05, 0.5])
def test_the_end_of_a_step_is_held_against_the_step_and_not_against_what_was_before_it(nights, size):
    for seed in range(3):
        logs = with_step(with_step(level(seed, 150), 90, size), 90 + nights, 1 / (1 + size) - 1)
        back = reports(logs)[-1]
        (screened,) = screen_night([logs[: back.reported + 1]], DEFAULT)
        assert screened.reported_tonight and screened.last_shift.onset == back.onset
        assert screened.effect == pytest.approx(-np.log1p(size), abs=0.02)
        assert screened.nights == pytest.approx(back.reported - back.onset + 1, abs=1)


def test_a_night_that_jumps_the_other_way_than_what_it_reports_tells_its_report():
    logs = with_step(level(26), 60, -0.015)[:68]
    logs[-1] += 0.3
    (screened,) = screen_night([logs], DEFAULT)
    assert screened.reported_tonight and screened.effect == pytest.approx(-0.015, abs=0.005)
    assert (screened.moved_as, screened.nights) == ("step", 8)


def test_a_floor_of_noise_keeps_a_quiet_history_from_shouting():
    logs = with_step(level(13, nights=40, sd=0.0002), 38, 0.004)
    loud, believed = (screen_night([logs], DEFAULT, floors)[0] for floors in ([0.0], [0.006]))
    assert loud.score > 5 and believed.score < 1 and believed.scale == 0.006
