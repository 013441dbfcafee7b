"""How likely each commit builds, learned from those that were tried: commits that do not build come in runs.

A Markov chain of two states along the commits: a share of all does not build, and neighbours are alike with a
correlation that falls with the distance. Share and correlation are unknown; a grid of both is weighed by what was
tried.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from bot.bisection.levels import Array

SHARES: Array = np.array([0.02, 0.07, 0.15, 0.3, 0.5])  # of commits that do not build
SHARE_WEIGHTS: Array = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
CORRELATIONS: Array = np.array([0.0, 0.5, 0.75, 0.9, 0.97])  # of neighbours: runs of 1, 2, 4, 10 and 30 or so


def build_chances(length: int, tried: Mapping[int, bool], asked: Array) -> Array:
    """The probability that each of the `asked` places builds; none of them may be among those that were tried.

    The last of the places 0 ... length - 1, the bad end, is taken to build where it was not tried yet.
    """
    return _build_chances(length, tuple(tried.items()), tuple(asked.tolist()))


@lru_cache(maxsize=16)  # from pair to pair of commits that are built, nothing of it changes
def _build_chances(length: int, tried: tuple[tuple[int, bool], ...], asked_for: tuple[int, ...]) -> Array:
    asked = np.array(asked_for, dtype=np.intp)
    known = {0: True, length - 1: True, **dict(tried)}
    places = np.array(sorted(known))
    failed = np.array([not known[place] for place in places])
    share = np.repeat(SHARES, len(CORRELATIONS))[:, None]
    correlation = np.tile(CORRELATIONS, len(SHARES))[:, None]

    def moved(alike: Array, before: Array, after: Array) -> Array:
        """P(after | before), both True where a commit does not build; shape (grid, commits)."""
        chance = np.where(after, share, 1 - share)
        return chance + alike * ((before == after) - chance)

    evidence = np.log(moved(correlation ** np.diff(places), failed[:-1], failed[1:])).sum(axis=1)
    weight = np.repeat(SHARE_WEIGHTS, len(CORRELATIONS)) * np.exp(evidence - evidence.max())
    weight /= weight.sum()

    right = np.searchsorted(places, asked)
    before, after = failed[right - 1], failed[right]
    to_left = correlation ** (asked - places[right - 1])
    to_right = correlation ** (places[right] - asked)
    yes, no = np.array(True), np.array(False)
    bad = moved(to_left, before, yes) * moved(to_right, yes, after)
    good = moved(to_left, before, no) * moved(to_right, no, after)
    return weight @ (good / (good + bad))
