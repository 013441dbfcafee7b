"""The next step of a bisection: what to build or measure, or the verdict.

After the ends are measured, the step is taken that is expected to tell most bits for its cost: a visit to a commit that
is built costs its pairs, a visit to another one a build as well, which may fail.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from bot.bisection.buildable import build_chances
from bot.bisection.exact import flaky_places, posterior_of_exact, settled_values
from bot.bisection.information import information
from bot.bisection.levels import Array
from bot.bisection.posterior import Posterior, posterior_of_times
from bot.bisection.state import SearchState
from bot.bisection.verdict import (
    Verdict,
    ends_not_measurable,
    equal_ends,
    found,
    separable,
    sums_by_set,
)

CHANCES: Array = np.concatenate([[0.0], special.expit(np.linspace(-12, 12, 97)), [1.0]])
TRIFLE = 1e-4  # bits that a visit to a commit may tell without being worth it
SURE_THERE_IS_ONE = 0.05  # chance of equal ends under which commits between them are built
EVEN = 0.5  # chance of equal ends above which a last look calls them equal
UNLOCATED = 0.05  # chance of more changes than are told of, at which a search may end
LONGER_VISITS = 4  # a visit to a commit takes a quarter of the pairs that it has: few more would change little
BUILDS_PER_BIT, BUILDS_BESIDE = 2, 24  # attempts that a search may take, by log2 of its commits
PROBES_PER_BIT, PROBES_BESIDE = 30, 300  # and pairs


@dataclass(frozen=True)
class Build:
    """Make a build of this commit, then tell `with_build`."""

    commit: str


@dataclass(frozen=True)
class Probe:
    """Measure this commit in n zygote pairs against the good end (exact values: n runs), then tell `with_probes`."""

    commit: str
    n: int


@dataclass(frozen=True)
class Done:
    """The search has ended."""

    verdict: Verdict


Step = Build | Probe | Done


def next_step(state: SearchState) -> Step:
    """What to do now. Depends on the state alone, so that a search that was killed goes on as it would have."""
    for end, name in ((0, "good"), (len(state.commits) - 1, "bad")):
        if end not in state.built:
            return Build(state.commits[end])
        if not state.built[end]:
            reason = next(one.reason for one in reversed(state.attempts) if one.commit == state.commits[end])
            return Done(ends_not_measurable(state, f"the {name} end has no build: {reason or 'no reason was told'}"))
    return _step_of_exact(state) if state.what == "exact" else _step_of_times(state)


def posterior(state: SearchState) -> Posterior | None:
    """What is known; None as long as the ends were not measured."""
    if state.what == "exact":
        ready = {0, len(state.commits) - 1} <= settled_values(state).keys()
        return posterior_of_exact(state) if ready else None
    return posterior_of_times(state) if len(state.commits) - 1 in state.measured else None


def _step_of_times(state: SearchState) -> Step:
    rules = state.rules
    at_end = len(state.measured.get(len(state.commits) - 1, ()))
    if at_end < rules.end_probes:
        return Probe(state.bad, rules.end_probes - at_end)
    for place, ok in state.built.items():  # built, and then killed
        if ok and place > 0 and place not in state.measured:
            return Probe(state.commits[place], rules.first_visit)
    known = posterior_of_times(state)
    if known.nothing >= rules.sure:
        reason = f"no change of {known.smallest:.3g} or more (log ratio) in {at_end} pairs of the ends"
        return Done(equal_ends(state, known, reason))
    if known.nothing > SURE_THERE_IS_ONE:
        if at_end < rules.most_end_probes:
            return Probe(state.bad, max(rules.again, at_end // LONGER_VISITS))
        if known.nothing > _enough_to_end_early(state):
            return Done(
                equal_ends(
                    state,
                    known,
                    f"{at_end} pairs of the ends show no clear change of {known.smallest:.3g} or more (log ratio)",
                )
            )
    if _is_located(state, known):
        return Done(found(state, known))
    if (spent := _spent(state)) is not None:
        return Done(_at_last(state, known, spent, spent=True))
    return _end_again(state) or _most_telling(state, known)


def _step_of_exact(state: SearchState) -> Step:
    ends = (0, len(state.commits) - 1)
    flaky = flaky_places(state)
    for end in ends:
        if end in flaky:
            return Done(ends_not_measurable(state, f"the runs of {state.commits[end]} disagree: it is flaky"))
    for place, ok in state.built.items():
        runs = state.rules.agreeing - len(state.measured.get(place, ()))
        if ok and runs > 0 and place not in flaky:
            return Probe(state.commits[place], runs)
    known = posterior_of_exact(state)
    if known.nothing == 1:
        return Done(equal_ends(state, known, f"{state.rules.agreeing} runs of each end agree"))
    if _is_located(state, known):
        return Done(found(state, known))
    if (spent := _spent(state)) is not None:
        return Done(found(state, known, spent, spent=True))
    return _most_telling(state, known)


def _is_located(state: SearchState, known: Posterior) -> bool:
    """Whether each change lies for sure in a set that no build separates."""
    by_set = sums_by_set(state, known.change)
    tops = by_set[: known.likely_count].argmax(axis=1)
    located = by_set.sum(axis=0)[tops] >= state.rules.sure
    more = known.counts[known.likely_count + 1 :].sum()
    return bool(located.all()) and len(set(tops)) == len(tops) and more <= UNLOCATED


def _at_last(state: SearchState, known: Posterior, reason: str, *, spent: bool = False) -> Verdict:
    """The verdict when nothing more can be measured: the likelier of equal ends and a change."""
    return equal_ends(state, known, reason) if known.nothing > EVEN else found(state, known, reason, spent=spent)


def _enough_to_end_early(state: SearchState) -> float:
    """The chance of equal ends above which a search ends with that before its budget is spent.

    As long as only the ends were measured, their last pair is a last look. Once commits between them are, every step is
    another look, and one of many is above even odds by luck: a step of the smallest size was lost so in one of twenty.
    """
    ends = {0, len(state.commits) - 1}
    return EVEN if state.measured.keys() <= ends else state.rules.likely


def _spent(state: SearchState) -> str | None:
    """Which budget is spent, if one is."""
    bits = np.log2(len(state.commits) - 1)
    attempts = state.rules.most_attempts or int(BUILDS_BESIDE + BUILDS_PER_BIT * bits)
    probes = state.rules.most_probes or int(PROBES_BESIDE + PROBES_PER_BIT * bits)
    if len(state.attempts) >= attempts:
        return f"{len(state.attempts)} builds were tried"
    what = "runs" if state.what == "exact" else "pairs"
    return f"{state.probes} {what} were measured" if state.probes >= probes else None


def _end_again(state: SearchState) -> Probe | None:
    """The ends by turns, every few visits: they say at which levels, and how noisily, all else is measured."""
    ends = {state.good, state.bad}
    last = state.batches[-state.rules.ends_every :]
    if len(last) < state.rules.ends_every or any(batch.commit in ends for batch in last):
        return None
    before = next((batch.commit for batch in reversed(state.batches) if batch.commit in ends), state.good)
    return Probe(state.good if before == state.bad else state.bad, state.rules.again)


def _most_telling(state: SearchState, known: Posterior) -> Step:
    """The visit that is expected to tell most of where the changes are, for its cost."""
    rules = state.rules
    candidates = separable(state)
    happened = np.cumsum(known.change, axis=1)[:, candidates]  # by each of these commits
    open_ = ((happened > TRIFLE) & (happened < 1 - TRIFLE)).any(axis=0)
    candidates, happened = candidates[open_], happened[:, open_]
    if not candidates.size:
        return Done(_at_last(state, known, "no build tells more"))
    places = candidates + 1
    runs = np.zeros(len(state.commits))
    runs[list(state.measured)] = [len(values) for values in state.measured.values()]
    runs = runs[places]
    is_built = runs > 0  # what is built, but was not measured, has been measured before this
    first = rules.first_visit if state.what == "times" else rules.agreeing
    visit = np.where(is_built, np.maximum(rules.again, runs // LONGER_VISITS), first).astype(int)

    bits = np.zeros(len(places))
    chance = build_chances(len(state.commits), state.built, places[~is_built])
    at_first = _separation(state, known, 0, first)
    again = _separation(state, known, runs[is_built], visit[is_built])
    for number in np.flatnonzero(happened.max(axis=1) > TRIFLE):
        table = information(CHANCES, at_first[number])
        bits[~is_built] += chance * np.interp(happened[number, ~is_built], CHANCES, table)
        if state.what == "times":  # exact runs that agree are not asked again
            bits[is_built] += information(happened[number, is_built], again[number])
    cost = visit.astype(float)
    cost[~is_built] = rules.build_cost + chance * first
    best = int(np.argmax(bits / cost))
    if bits[best] < TRIFLE:
        return Done(_at_last(state, known, "no further build or pair tells more"))
    commit = state.commits[places[best]]
    return Probe(commit, int(visit[best])) if is_built[best] else Build(commit)


def _separation(state: SearchState, known: Posterior, runs: "Array | int", visit: "Array | int") -> Array:
    """How far apart, in standard errors, a visit sees each change: shape (changes, commits), or (changes,) for one."""
    if state.what == "exact":
        return np.full((len(known.steps), *np.shape(runs)), np.inf)

    def precision(pairs: "Array | int") -> Array:
        return np.asarray(pairs / (known.pair_sd**2 + pairs * known.shared_sd**2))

    return np.multiply.outer(np.abs(known.steps), np.sqrt(precision(runs + visit) - precision(runs)))
