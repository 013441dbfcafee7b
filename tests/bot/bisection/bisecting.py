"""Bisections of what a test makes up."""

from collections.abc import Callable, Collection, Iterator

import numpy as np

from bot.bisection.search import Build, Done, Probe, Step, next_step
from bot.bisection.state import Rules, SearchState, new_search, with_build, with_probes
from bot.bisection.verdict import Verdict

RULES = Rules(pair_sd=0.01, shared_sd=0.001)


def names(length: int) -> list[str]:
    """Of a range of so many commits after the good end, which is "0"."""
    return [str(place) for place in range(length + 1)]


def steps_of(
    state: SearchState, value: Callable[[int], float], broken: Collection[int] = ()
) -> Iterator[tuple[SearchState, Step]]:
    """Each state with its next step, to the verdict. `value` gives what one pair of a place measures."""
    while True:
        step = next_step(state)
        yield state, step
        match step:
            case Build(commit):
                state = with_build(state, commit, ok=int(commit) not in broken, reason="told so")
            case Probe(commit, n):
                state = with_probes(state, commit, [value(int(commit)) for _ in range(n)])
            case Done():
                return


def verdict_of(
    state: SearchState, value: Callable[[int], float], broken: Collection[int] = ()
) -> tuple[Verdict, SearchState]:
    *_, (last, done) = steps_of(state, value, broken)
    assert isinstance(done, Done)
    return done.verdict, last


def noisy(culprits: dict[int, float], seed: int, sd: float = 0.01) -> Callable[[int], float]:
    """Pairs with normal noise, whose level changes at the culprits by their steps."""
    generator = np.random.default_rng(seed)
    return lambda place: sum(step for at, step in culprits.items() if at <= place) + float(generator.normal(0, sd))


def search(length: int, **options: object) -> SearchState:
    return new_search(names(length), options.pop("rules", RULES), **options)
