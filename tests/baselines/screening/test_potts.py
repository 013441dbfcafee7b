"""The best path against every segmentation there is."""

import itertools

import numpy as np
import pytest

from baselines.screening.potts import CAP, STEP, best_paths


def cheapest(logs, scales, penalty):
    """The least cost over all segmentations and grid levels, and the starts of last segments that attain it."""
    step = STEP * np.median(scales)
    levels = np.unique(np.rint(logs / step)) * step
    misfit = np.minimum(((logs[:, None] - levels[None, :]) / scales[:, None]) ** 2, CAP**2)
    nights = len(logs)
    best, starts = np.inf, set()
    for count in range(nights):
        for cuts in itertools.combinations(range(1, nights), count):
            edges = [0, *cuts, nights]
            parts = [misfit[a:b].sum(axis=0) for a, b in itertools.pairwise(edges)]
            cost = penalty * count + sum(part.min() for part in parts)
            if cost < best - 1e-3:
                best, starts = cost, set()
            if cost < best + 1e-3:
                starts.add(edges[-2])
    return best, starts


@pytest.mark.parametrize("seed", range(8))
def test_every_night_knows_the_start_of_a_cheapest_segmentation(seed):
    generator = np.random.default_rng(seed)
    logs = generator.normal(0, 1, 9) + np.where(np.arange(9) >= generator.integers(2, 8), 6.0, 0.0)
    logs[generator.integers(9)] += generator.choice([0, 15])
    scales = generator.uniform(0.7, 1.3, 9)
    starts = best_paths(logs[None], scales[None], 5.0)[0]
    _, allowed = cheapest(logs, scales, 5.0)
    assert starts[-1] in allowed


def test_windows_that_begin_with_nights_that_are_not_there_are_as_those_without():
    generator = np.random.default_rng(9)
    logs = generator.normal(0, 1, (1, 40)) + np.where(np.arange(40) >= 25, 5.0, 0.0)
    scales = np.ones((1, 40))
    alone = best_paths(logs, scales, 16)
    padded = best_paths(*(np.concatenate([np.full((1, 10), np.nan), x], axis=1) for x in (logs, scales)), 16)
    assert alone[0, -1] == 25
    assert np.array_equal(np.maximum(0, padded[:, 10:] - 10), alone)


def test_a_spike_is_cheaper_than_two_jumps_and_a_level_of_many_nights_is_not():
    for length, start in ((1, 0), (2, 0), (8, 15)):
        logs = np.zeros((1, 15 + length + (length < 8)))
        logs[0, 15 : 15 + length] = 10.0
        assert best_paths(logs, np.ones_like(logs), 20)[0, -1] == start
