"""How likely the change is at each commit of the range: exact inference in a hidden Markov chain along the commits.

The hidden state at a commit is (how many changes there were so far, the level). Each commit changes the level with a
probability by its weight, independently of all others; the step is drawn from `step_prior`. So the effect is integrated
over, never plugged in, and a second and a third change come out of the same sums as the first (Fearnhead 2006 does so
for independent levels). Only measured commits, the sites, have data; a run of others between two of them acts like a
single commit of their joint weight, in which the change is distributed by weight.
"""

from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import numpy as np

from bot.bisection.levels import (
    LEVELS,
    NOISE_WEIGHTS,
    NOISES,
    SCALES,
    SHARED,
    TYPICAL_SCALE,
    ZERO,
    Array,
    level_curve,
    sd_on_grid,
    smallest_on_grid,
    smear,
    step_prior,
    unit_of,
)
from bot.bisection.state import SearchState

CHANGES = 3  # as many as a range of times is taken to hold at most
RARE = 1e-9  # a probability of a count of changes at which nobody asks for their steps


@dataclass(frozen=True)
class Posterior:
    """What is known after all measurements. The commit of index k - 1 is the k-th after the good end."""

    counts: Array  # probability of 0, 1, ... changes
    change: Array  # (changes, commits): probability that there is an i-th change and that it is at this commit
    steps: Array  # (changes,): the i-th step, in log units
    pair_sd: float  # of one pair, in log units
    shared_sd: float  # of what all pairs of a build share
    smallest: float  # step that was looked for, in log units

    @property
    def nothing(self) -> float:
        """Probability that nothing changed."""
        return float(self.counts[0])

    @property
    def by_commit(self) -> Array:
        """Probability that there is a change at each commit, whichever it is of several."""
        return np.minimum(self.change.sum(axis=0), 1.0)

    @property
    def likely_count(self) -> int:
        """The number of changes that is most likely, given that there is any."""
        return 1 + int(np.argmax(self.counts[1:]))


def commit_weights(state: SearchState) -> Array:
    """The share of each commit after the good end in what is expected before all measuring."""
    return _shares(state.weights, len(state.commits) - 1)


def _shares(weights: tuple[float, ...], length: int) -> Array:
    found = np.array(weights or [1.0] * length)
    found = found / found.max()  # first, so that no sum overflows
    return found / found.sum()


def posterior_of_times(state: SearchState) -> Posterior:
    """The posterior, from at least one batch of the bad end."""
    rules = state.rules
    settings = (rules.pair_sd, rules.build_sd, rules.smallest, rules.nothing, rules.further)
    return _posterior(state.weights, len(state.commits) - 1, tuple(state.measured.items()), settings)


@lru_cache(maxsize=64)
def _posterior(
    weights: tuple[float, ...], length: int, measured: tuple[tuple[int, tuple[float, ...]], ...], settings: tuple
) -> Posterior:
    pair_sd, shared_sd, smallest, nothing, further = settings
    share = _shares(weights, length)
    sites = [(place, values) for place, values in measured if place > 0]
    unit = unit_of(pair_sd, shared_sd, float(median(sites[-1][1])))
    pair_sd = sd_on_grid(pair_sd, unit)
    smallest = smallest_on_grid(smallest, unit)
    curves = [level_curve(values, unit, pair_sd, shared_sd) for _, values in sites]
    stops = [0, *(place for place, _ in sites)]
    gaps = np.diff(stops)
    masses = np.add.reduceat(share, stops[:-1])
    odds = np.expm1(further * masses)  # of a change against none, up to one factor for all
    steps = step_prior(smallest / unit)

    first = np.zeros((CHANGES + 1, NOISES, len(LEVELS)))
    first[0] = NOISE_WEIGHTS[:, None] * _bases(shared_sd / unit)
    for place, values in measured:
        if place == 0:  # the good end against itself: its level is 0, and it speaks of the scale only
            first[0] *= level_curve(values, unit, pair_sd, 0.0)[:, ZERO, None]
    final = np.full((CHANGES + 1, 1, 1), (1 - nothing) / np.expm1(further))
    final[0] = nothing

    # forward[k]: all data up to the k-th site, by state at it. Each is scaled at will: proportions within it are used.
    forward = [first / first.sum()]
    for odd, curve in zip(odds, curves, strict=True):
        state = forward[-1].copy()
        state[1:] += (odd * forward[-1][:-1]) @ steps
        state *= curve
        forward.append(state / state.sum())
    backward = np.empty((len(forward), *first.shape))  # the data of all sites after this one, given the state at it
    seen = np.empty((len(sites), *first.shape))  # the data from a site on, given the state at it
    came_from = np.empty((len(sites), CHANGES, *first.shape[1:]))  # the same, given the state before a change to it
    backward[-1] = final
    for number in reversed(range(len(sites))):
        seen[number] = backward[number + 1] * (curves[number] / backward[number + 1].max())
        came_from[number] = odds[number] * (seen[number, 1:] @ steps)  # the step prior is symmetric
        backward[number] = seen[number]
        backward[number, :-1] += came_from[number]

    levels = np.array(forward)
    before = levels[:-1]
    stayed = (before * seen).sum(axis=(1, 2, 3))
    entered = (before[:, :-1] * came_from).sum(axis=(2, 3))  # (sites, changes)
    chance = entered / np.maximum(entered.sum(axis=1) + stayed, np.finfo(float).tiny)[:, None]
    change = np.repeat((chance / masses[:, None]).T, gaps, axis=1) * share

    at_end = forward[-1] * final / (forward[-1] * final).sum()
    of_noise = at_end.sum(axis=(0, 2)).reshape(len(SHARED), len(SCALES))
    return Posterior(
        counts=at_end.sum(axis=(1, 2)),
        change=change,
        steps=_steps(levels, backward, smallest / unit) * unit,
        pair_sd=float(of_noise.sum(axis=0) @ SCALES) / TYPICAL_SCALE * pair_sd,
        shared_sd=float(of_noise.sum(axis=1) @ SHARED) * shared_sd,
        smallest=smallest,
    )


def _steps(forward: Array, backward: Array, otherwise: float) -> Array:
    """Each step in units: the difference of the mean levels with one change more and one fewer; shape (CHANGES,)."""
    joint = np.einsum("pcnl,pcnl->pcl", forward, backward)
    joint /= joint.sum(axis=(1, 2), keepdims=True)
    occupied = joint.sum(axis=(0, 2))
    means = np.where(occupied > RARE, (joint.sum(axis=0) @ LEVELS) / np.maximum(occupied, RARE), np.nan)
    return np.nan_to_num(np.diff(means), nan=otherwise)


def _bases(shared: float) -> Array:
    """The level before any change, by noise: that of the good end, but for what all pairs of its build share."""
    return np.repeat([smear(times * shared)[ZERO] for times in SHARED], len(SCALES), axis=0)
