"""Which commits to build at once, where builds are made on other machines before anything of them is measured."""

import numpy as np

from bot.bisection.search import Build, Done, Probe, next_step, posterior
from bot.bisection.state import SearchState
from bot.bisection.verdict import separable


def next_builds(state: SearchState, count: int) -> tuple[str, ...]:
    """At most `count` commits that are not built yet, and the ends before them: those that divide what is probable so
    far into equal parts. Empty if the search has ended."""
    step = next_step(state)
    if isinstance(step, Done):
        return ()
    ends = [commit for commit in (state.good, state.bad) if state.index[commit] not in state.built]
    wanted = list(dict.fromkeys([*ends, *([step.commit] if isinstance(step, Build) else [])]))
    known = posterior(state)
    weights = known.by_commit if known is not None else np.array(state.weights or [1.0] * (len(state.commits) - 1))
    upto = np.cumsum(weights) / np.sum(weights)
    free = [place + 1 for place in separable(state).tolist() if place + 1 not in state.built]
    free = [place for place in free if state.commits[place] not in wanted]
    room = count - len(set(wanted) - set(ends))
    for number in range(1, room + 1):
        if not free:
            break
        place = int(np.searchsorted(upto, number / (room + 1))) + 1
        nearest = min(free, key=lambda one: (abs(one - place), one))
        free.remove(nearest)
        wanted.append(state.commits[nearest])
    return tuple(wanted)


def needed(state: SearchState) -> tuple[str, ...]:
    """Commits that are built, and without whose builds nothing can be measured: the good end, which every pair has, the
    bad one, which is visited again and again, and what is to be visited next."""
    step = next_step(state)
    found = [state.good, state.bad, *([step.commit] if isinstance(step, Probe) else [])]
    return tuple(commit for commit in dict.fromkeys(found) if state.built.get(state.index[commit], False))
