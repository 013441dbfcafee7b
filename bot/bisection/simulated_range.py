"""A range of commits that is made up, to be bisected: which commits build, and what their pairs give."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bot.bisection.levels import Array

Tails = Literal["normal", "t3", "spikes"]


@dataclass(frozen=True)
class Scenario:
    """What a made-up range is like. Effects are in sd of a pair, which is 1."""

    commits: int
    steps: tuple[float, ...]  # () for a range in which nothing changed
    broken: float = 0.0  # share of commits that do not build
    run: float = 1.0  # mean length of the runs in which they come
    tails: Tails = "normal"
    shared_sd: float = 0.0  # of what all pairs of one build share
    sd: float = 1.0  # of a pair, where it is not the one that is known


@dataclass(frozen=True)
class Range:
    """One of them. Places are from 0, the good end, to the number of commits, the bad one."""

    builds: tuple[bool, ...]
    culprits: tuple[int, ...]  # in their order
    levels: Array  # of each place, with what its build shares
    weights: tuple[float, ...]  # by touched paths: one commit in ten is twenty times as likely


TOUCHED = 0.1
TOUCHED_WEIGHT = 20.0


def draw_range(scenario: Scenario, generator: np.random.Generator) -> Range:
    """A range whose culprits follow the weights: 69 % of them have touched the paths."""
    n = scenario.commits
    weights = np.where(generator.random(n) < TOUCHED, TOUCHED_WEIGHT, 1.0)
    culprits = np.sort(generator.choice(n, len(scenario.steps), replace=False, p=weights / weights.sum())) + 1
    levels = np.zeros(n + 1)
    for culprit, step in zip(culprits, scenario.steps, strict=True):
        levels[culprit:] += step
    levels[1:] += generator.normal(0, scenario.shared_sd, n) - generator.normal(0, scenario.shared_sd)
    return Range(tuple(_builds(scenario, generator)), tuple(culprits.tolist()), levels, tuple(weights.tolist()))


def _builds(scenario: Scenario, generator: np.random.Generator) -> list[bool]:
    """A chain of two states with the share and the mean length of runs that are wanted; both ends build."""
    share, n = scenario.broken, scenario.commits
    if share == 0:
        return [True] * (n + 1)
    stay_broken = max(1 - 1 / scenario.run, share) if scenario.run > 1 else share
    become_broken = share * (1 - stay_broken) / (1 - share)
    broken = generator.random() < share
    found = [True]
    for _ in range(n - 1):
        broken = generator.random() < (stay_broken if broken else become_broken)
        found.append(not broken)
    return [*found, True]


def draw_pairs(scenario: Scenario, level: float, n: int, generator: np.random.Generator) -> list[float]:
    """The log ratios of n pairs, with sd 1 times the scenario's, but for spikes, which come on top."""
    if scenario.tails == "t3":
        noise = generator.standard_t(3, n) / np.sqrt(3)
    else:
        noise = generator.normal(0, 1, n)
        if scenario.tails == "spikes":
            noise += np.where(generator.random(n) < 0.05, generator.normal(0, 10, n), 0.0)
    return (level + scenario.sd * noise).tolist()
