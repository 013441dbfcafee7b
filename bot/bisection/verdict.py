"""What a bisection comes to: for each change the smallest set of commits that the builds can separate."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bot.bisection.exact import flaky_places
from bot.bisection.levels import Array
from bot.bisection.posterior import Posterior
from bot.bisection.state import SearchState

Kind = Literal[
    "culprit", "set", "several culprits", "not reproduced", "environment", "budget spent", "ends not measurable"
]
Certainty = Literal["certain", "likely", "open"]


@dataclass(frozen=True)
class Suspects:
    """One change: the commits that it may be, in their order."""

    commits: tuple[str, ...]  # the credible set, of at least `likely`
    inseparable: tuple[str, ...]  # the likeliest of them, with those that no build separates from it
    probability: float  # that a change is among the inseparable
    certainty: Certainty  # of the inseparable
    step: float  # log ratio; of exact values their difference


@dataclass(frozen=True)
class Verdict:
    """How a search ended."""

    kind: Kind
    suspects: tuple[Suspects, ...] = ()
    nothing: float = 0.0  # probability that the ends are equal
    reason: str = ""
    environment: tuple[str, ...] = ()  # what differs beside the build, where the ends are equal
    flaky: tuple[str, ...] = ()  # commits whose runs disagreed
    unbuildable: tuple[str, ...] = ()


def separable(state: SearchState) -> Array:
    """Indices of the commits after the good end that have a build or may get one, the last of which is the bad end.

    A change at any other shows first at the next of these, and cannot be told from one there.
    """
    useful = np.ones(len(state.commits), dtype=bool)
    useful[[0, *(place for place, ok in state.built.items() if not ok), *flaky_places(state)]] = False
    return np.flatnonzero(useful) - 1


def sums_by_set(state: SearchState, change: Array) -> Array:
    """Probabilities of commits, the last axis, added up over the sets that end at each of the `separable`."""
    upto = np.cumsum(change, axis=-1)[..., separable(state)]
    return np.diff(upto, axis=-1, prepend=0.0)


def suspects_of(state: SearchState, posterior: Posterior) -> tuple[Suspects, ...]:
    """As many as there are changes most likely."""
    stops = separable(state) + 1
    starts = np.concatenate([[0], stops[:-1]])
    by_set = sums_by_set(state, posterior.change)
    any_change = by_set.sum(axis=0)
    found = []
    for number in range(min(posterior.likely_count, len(by_set))):
        chances = by_set[number]
        top = int(np.argmax(chances))
        order = np.argsort(-chances, kind="stable")
        upto = np.cumsum(chances[order])
        enough = min(int(np.searchsorted(upto, state.rules.likely * upto[-1])) + 1, len(order))
        credible = sorted(order[:enough].tolist())
        found.append(
            Suspects(
                commits=tuple(name for one in credible for name in state.commits[starts[one] + 1 : stops[one] + 1]),
                inseparable=state.commits[starts[top] + 1 : stops[top] + 1],
                probability=min(float(any_change[top]), 1.0),
                certainty=_certainty(state, float(any_change[top])),
                step=float(posterior.steps[number]),
            )
        )
    return tuple(found)


def found(state: SearchState, posterior: Posterior, reason: str = "", *, spent: bool = False) -> Verdict:
    """The verdict of a search that ends with a change, or (`spent`) before it was sure of one."""
    suspects = suspects_of(state, posterior)
    open_ended = any(one.certainty == "open" for one in suspects)
    kind: Kind
    if spent and open_ended:
        kind = "budget spent"
    elif len(suspects) > 1:
        kind = "several culprits"
    else:
        kind = "culprit" if len(suspects[0].inseparable) == 1 and not open_ended else "set"
    return Verdict(kind, suspects, posterior.nothing, reason, **_told(state))


def equal_ends(state: SearchState, posterior: Posterior, reason: str) -> Verdict:
    """The verdict of a search whose ends are equal: the environment, if that differs, else it was not reproduced."""
    if state.environment:
        return Verdict("environment", (), posterior.nothing, reason, state.environment, **_told(state))
    return Verdict("not reproduced", (), posterior.nothing, reason, **_told(state))


def ends_not_measurable(state: SearchState, reason: str) -> Verdict:
    return Verdict("ends not measurable", reason=reason, **_told(state))


def _certainty(state: SearchState, probability: float) -> Certainty:
    if probability >= state.rules.sure:
        return "certain"
    return "likely" if probability >= state.rules.likely else "open"


def _told(state: SearchState) -> dict[str, tuple[str, ...]]:
    return {
        "flaky": tuple(state.commits[place] for place in flaky_places(state)),
        "unbuildable": tuple(attempt.commit for attempt in state.attempts if not attempt.ok),
    }
