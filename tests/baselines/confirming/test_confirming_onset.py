"""When a change may have come in."""

import numpy as np
import pytest
from small_fleet import calm, stepped

from baselines.confirming.onset import REACH, date_onset

NOISE = 0.002


@pytest.mark.parametrize("size", [0.05, -0.05])
@pytest.mark.parametrize("since", [1, 2, 5, 12])
def test_a_large_step_is_dated_to_its_night(size, since):
    logs = stepped(calm(1, 40, NOISE), [0], -since, size)[0]
    found = date_onset(logs, 0.0, np.log1p(size), NOISE, 10)
    assert (found.low, found.best, found.high) == (40 - since - (found.best - found.low), 40 - since, found.high)
    assert found.low >= 40 - since - 1 and found.high <= 40 - since + 1


def test_of_a_small_step_the_interval_holds_the_night_and_is_wider():
    held, widths = [], []
    rng = np.random.default_rng(11)
    for _ in range(200):
        logs = rng.normal(0, NOISE, 40)
        logs[33:] += 1.5 * NOISE
        found = date_onset(logs, 0.0, 1.5 * NOISE, NOISE, 10)
        held.append(found.low <= 33 <= found.high)
        widths.append(found.high - found.low)
    assert np.mean(held) > 0.95 and np.mean(widths) > 3
    assert max(widths) <= 2 * REACH


def test_one_wild_night_does_not_date_a_step():
    logs = stepped(calm(1, 40, NOISE), [0], -6, 0.01)[0]
    logs[20] += 0.3
    found = date_onset(logs, 0.0, np.log1p(0.01), NOISE, 10)
    assert found.low <= 34 <= found.high and found.low > 30


def test_no_onset_is_before_the_first_night_that_may_be_one():
    logs = stepped(calm(1, 40, NOISE), [0], -12, 0.05)[0]
    found = date_onset(logs, 0.0, np.log1p(0.05), NOISE, 32)
    assert (found.low, found.best) == (32, 32)


def test_across_a_change_of_the_environment_the_interval_allows_for_what_is_not_known_of_its_shift():
    """The older nights are off by a standard deviation: taken as they are, they date the step."""
    rng = np.random.default_rng(2)
    held = {True: 0, False: 0}
    for _ in range(100):
        logs = rng.normal(0, NOISE, 40)
        logs[:30] += 1.5 * NOISE
        logs[34:] += 2.5 * NOISE
        for allowed in held:
            found = date_onset(logs, 0.0, 2.5 * NOISE, NOISE, 20, 30 if allowed else 0)
            held[allowed] += found.low <= 34 <= found.high
    assert held[True] > 90 and held[True] > held[False]
