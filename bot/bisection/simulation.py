"""Bisections of made-up ranges, through the same states and steps as real ones, and how they ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bot.bisection.search import Build, Done, Probe, next_step
from bot.bisection.simulated_range import Range, Scenario, draw_pairs, draw_range
from bot.bisection.state import Rules, SearchState, new_search, with_build, with_probes
from bot.bisection.verdict import Kind, Verdict

KNOWN_SHARED_SD = 0.2  # what the search takes the shared part for, whatever it is


@dataclass(frozen=True)
class Ended:
    """How one bisection ended. The ends are no builds here."""

    held: (
        bool  # every culprit is in the inseparable set of one of the verdict's changes; nothing changed: so it was told
    )
    certain_but_wrong: bool
    builds: int
    attempts: int
    probes: int
    credible: bool  # every culprit is in a credible set
    kind: Kind


def bisect_range(
    scenario: Scenario, one: Range, rules: Rules, generator: np.random.Generator, *, weighted: bool
) -> tuple[SearchState, Verdict]:
    """Search a made-up range to the end."""
    commits = tuple(str(place) for place in range(scenario.commits + 1))
    state = new_search(commits, rules, weights=one.weights if weighted else ())
    while True:
        match next_step(state):
            case Build(commit):
                state = with_build(state, commit, ok=one.builds[int(commit)])
            case Probe(commit, n):
                level = one.levels[int(commit)] if commit != "0" else 0.0
                state = with_probes(state, commit, draw_pairs(scenario, float(level), n, generator))
            case Done(verdict):
                return state, verdict


def judged(one: Range, state: SearchState, verdict: Verdict) -> Ended:
    """A verdict against the truth."""
    culprits = {str(place) for place in one.culprits}
    named = {commit for suspects in verdict.suspects for commit in suspects.inseparable}
    credible = {commit for suspects in verdict.suspects for commit in suspects.commits}
    wrong = any(
        suspects.certainty == "certain" and not culprits & set(suspects.inseparable) for suspects in verdict.suspects
    )
    nothing = verdict.kind in ("not reproduced", "environment")
    return Ended(
        held=culprits <= named if culprits else nothing,
        certain_but_wrong=wrong or (nothing and bool(culprits)),
        builds=sum(attempt.ok for attempt in state.attempts) - 2,
        attempts=len(state.attempts) - 2,
        probes=state.probes,
        credible=culprits <= credible if culprits else nothing,
        kind=verdict.kind,
    )


def simulate(scenario: Scenario, seeds: Sequence[int], rules: Rules | None = None, *, weighted: bool) -> list[Ended]:
    """One bisection a seed. Ranges of one seed are the same for either prior."""
    rules = rules or Rules(pair_sd=1.0, shared_sd=KNOWN_SHARED_SD)
    ended = []
    for seed in seeds:
        one = draw_range(scenario, np.random.default_rng([seed, 0]))
        state, verdict = bisect_range(scenario, one, rules, np.random.default_rng([seed, 1]), weighted=weighted)
        ended.append(judged(one, state, verdict))
    return ended
