"""A bisection of what is exact, such as a count or whether a test fails: runs that agree say it for certain.

It fills the same posterior, with a change between any two neighbours among the measured commits whose values differ. A
commit whose runs disagree is flaky: it says nothing, and is told.
"""

from itertools import pairwise

import numpy as np

from bot.bisection.posterior import Posterior, commit_weights
from bot.bisection.state import SearchState


def flaky_places(state: SearchState) -> tuple[int, ...]:
    """Commits whose runs gave different values."""
    if state.what != "exact":
        return ()
    return tuple(place for place, values in state.measured.items() if len(set(values)) > 1)


def settled_values(state: SearchState) -> dict[int, float]:
    """The value of each commit with enough runs, all of them alike."""
    return {
        place: values[0]
        for place, values in state.measured.items()
        if len(values) >= state.rules.agreeing and len(set(values)) == 1
    }


def posterior_of_exact(state: SearchState) -> Posterior:
    """The posterior, once both ends are settled."""
    weights = commit_weights(state)
    settled = settled_values(state)
    places = list(settled)
    between = [(a, b) for a, b in pairwise(places) if settled[a] != settled[b]]
    change = np.zeros((max(len(between), 1), len(weights)))
    steps = np.zeros(len(change))
    for number, (a, b) in enumerate(between):
        change[number, a:b] = weights[a:b] / weights[a:b].sum()
        steps[number] = settled[b] - settled[a]
    counts = np.zeros(len(change) + 1)
    counts[len(between)] = 1.0
    return Posterior(counts, change, steps, pair_sd=0.0, shared_sd=0.0, smallest=0.0)
