"""Level shifts of whole histories, with hindsight."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from baselines.screening.hindsight import segment_again
from baselines.screening.shifts import KNOBS


def history(nights=120, sd=0.004, seed=1, **steps):
    """ln of a history; steps: night=size, named n40 and so on."""
    logs = np.random.default_rng(seed).normal(0, sd, nights)
    for at, size in steps.items():
        logs[int(at[1:]) :] += size
    return logs


def shifts(logs, knob="default"):
    return segment_again([logs], KNOBS[knob])[0]


def test_steps_are_found_where_they_are_with_size_and_interval():
    found = shifts(history(n40=0.05, n80=-0.02))
    assert [(one.onset, one.reported) for one in found] == [(40, 119), (80, 119)]
    for one, size in zip(found, (0.05, -0.02), strict=True):
        assert one.low < size < one.high and one.onset_low <= one.onset <= one.onset_high


def test_noise_spikes_of_one_night_and_short_histories_have_none():
    spiked = history()
    spiked[60] += 0.5
    assert shifts(spiked) == []
    assert segment_again([np.zeros(0), np.zeros(5), np.zeros(50)], KNOBS["default"]) == [[], [], []]


def test_a_step_in_the_newest_nights_is_found_as_soon_as_three_nights_show_it():
    assert [one.onset for one in shifts(history(60, n57=0.1))] == [57]
    assert shifts(history(60, n58=0.1)) == []


def test_a_noise_that_began_late_is_not_held_against_the_quiet_nights_before():
    rng = np.random.default_rng(3)
    logs = np.concatenate([rng.normal(0, 0.001, 80), rng.normal(0.01, 0.001, 40), rng.normal(0.01, 0.05, 40)])
    assert [one.onset for one in shifts(logs)] == [80]


def test_two_nights_elsewhere_are_no_level():
    logs = history(100, sd=0.01)
    logs[50:52] += 0.04  # two nights are no level
    assert shifts(logs) == []


@settings(max_examples=60, deadline=None)
@example(seed=21, nights=21, sizes=[0.1, -0.3, -0.3, -0.3], knob="strict")  # several onsets fit equally well
@given(
    seed=st.integers(0, 10_000),
    nights=st.integers(0, 90),
    sizes=st.lists(st.sampled_from([-0.3, -0.05, 0.02, 0.1, 1.0]), max_size=4),
    knob=st.sampled_from(["strict", "default", "sensitive"]),
)
def test_onsets_are_in_order_and_a_mirrored_history_has_mirrored_shifts(seed, nights, sizes, knob):
    rng = np.random.default_rng(seed)
    logs = rng.normal(0, 0.005, nights)
    for size in sizes:
        logs[rng.integers(0, nights + 1) :] += size
    found = shifts(logs, knob)
    onsets = [one.onset for one in found]
    assert onsets == sorted(set(onsets)) and all(0 < onset < nights for onset in onsets)
    mirrored = shifts(-logs, knob)
    assert [one.onset for one in mirrored] == onsets
    assert [one.effect for one in mirrored] == pytest.approx([-one.effect for one in found])
