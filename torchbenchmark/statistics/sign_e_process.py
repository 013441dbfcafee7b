"""The sign e-process: evidence that grows pair by pair, may be looked at after every one, and may stop at any time.

H0: whatever came before, the next pair's log ratio lies above the margin with a probability of at most 1/2 (its
median is at most the margin). A gambler who bets on "above" at fair odds, with a stake of s of the capital, then
cannot expect to gain:

    E_k = mean over bets b of  prod over pairs i <= k of (1 + s_b h_b(D_i - margin))

is a nonnegative supermartingale with E_0 = 1, and P(E ever reaches c) <= 1 / c under H0 (Ville 1939; Shafer 2021;
Ramdas, Gruenwald, Vovk and Shafer 2023). h is the sign; a difference equal to the margin is a loss, for with a win or a
draw the bet could be better than fair. Assumes no distribution and no equal spread, and pairs may depend on the past.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from torchbenchmark.statistics.samples import FloatArray, finite_number, finite_vector, probability

Direction = Literal["slower", "faster"]
Verdict = Literal["confirmed", "futile", "undecided", "continue"]

NIGHTLY_ERROR = 0.01  # false confirmations of a whole night, at most
FUTILE_BELOW = 1 / 20  # three straight losses
MOST_PAIRS = 24


@dataclass(frozen=True)
class Bet:
    """A stake on "above the margin".

    Without a reach it is won or lost by the sign. With one it is a soft bet: h = clip(x / (reach * pair sd), -1, 1),
    which a pair just beyond the margin neither wins nor loses. Soft bets are fair only if differences are symmetric
    about a centre at or below the margin, and if the pair sd was fixed before the first pair; sign bets need neither.
    """

    stake: float  # share of the capital, above 0 and below 1
    reach: float | None = None  # in standard deviations of a pair

    def __post_init__(self) -> None:
        probability(self.stake, "stake")
        if self.reach is not None and finite_number(self.reach, "reach") <= 0:
            raise ValueError(f"reach {self.reach}: a number above 0 is needed")


SIGN_BETS = (Bet(0.5), Bet(0.75), Bet(0.92))
SOFT_BETS = (Bet(0.25, 1.5), Bet(0.5, 1.5), Bet(0.92, 1.5), Bet(0.75, 0.75))


@dataclass(frozen=True)
class Decision:
    verdict: Verdict
    e_value: float  # at the pair that decided, or at the last one
    pairs: int  # of tonight, until then
    threshold: float  # of the e-value, for "confirmed"


def e_path(
    log_ratios: ArrayLike,
    *,
    margin: float,
    direction: Direction = "slower",
    bets: Sequence[Bet] = SIGN_BETS,
    pair_sd: float | None = None,
) -> FloatArray:
    """E_1 ... E_n, shape (n,), after each of the log ratios (new over old build), shape (n,), in the order measured.

    margin >= 0, in log units. `faster` is the same on -log_ratios: H0 is then a median of at least -margin. pair_sd, in
    log units, is needed by soft bets alone and must come from before these pairs, such as from the A/A study.
    """
    ratios = finite_vector(log_ratios, "log ratios of pairs", at_least=0)
    if direction not in ("slower", "faster"):
        raise ValueError(f"direction {direction!r}: choose slower or faster")
    if not bets:
        raise ValueError("bets: none given; SIGN_BETS are usual")
    beyond = (ratios if direction == "slower" else -ratios) - finite_number(margin, "margin", at_least=0)
    log_capital = np.stack([np.cumsum(np.log1p(bet.stake * _payoff(beyond, bet, pair_sd))) for bet in bets])
    return np.exp(np.minimum(np.logaddexp.reduce(log_capital, axis=0) - np.log(len(bets)), 700.0))


def decide(
    log_ratios: ArrayLike,
    *,
    margin: float,
    candidates: int,
    direction: Direction = "slower",
    bets: Sequence[Bet] = SIGN_BETS,
    pair_sd: float | None = None,
    carried: ArrayLike = (),
    error: float = NIGHTLY_ERROR,
    futile_below: float = FUTILE_BELOW,
    futile_by_last_bet: bool = False,
    most_pairs: int = MOST_PAIRS,
) -> Decision:
    """The verdict at the first pair that gives one; what was measured after it does not change it.

    Confirmed at E >= candidates / error, futile at E < futile_below, undecided after most_pairs; else continue with
    another pair. By Ville's inequality and a union over the candidates, whatever their dependence, the chance of any
    false confirmation among them is at most `error`. `candidates` is how many were admitted, fixed before the first
    pair; who tries a test in both directions counts it twice.

    futile_by_last_bet: futile already where the last of the bets alone has come below futile_below, and E is below 1.
    When to give up changes nothing about the error: E may be left at any time. The last bet, a bold one, gives up after
    two straight losses, where the mean of several takes ten.

    carried: the log ratios of earlier nights of a candidate that was neither confirmed nor futile, same margin and
    bets, oldest first. They count as evidence and are not judged again. It keeps the `candidates` of the night in
    which it was admitted first: that night's error pays for it, and it does not count among those of the later
    nights.
    """
    threshold = confirming_threshold(candidates, error)
    probability(futile_below, "futile_below")
    if most_pairs < 1:
        raise ValueError(f"most_pairs {most_pairs}: at least 1 is needed")
    before = finite_vector(carried, "carried log ratios", at_least=0)
    tonight = finite_vector(log_ratios, "log ratios of pairs", at_least=0)[:most_pairs]
    ratios = np.concatenate((before, tonight))
    path = e_path(ratios, margin=margin, direction=direction, bets=bets, pair_sd=pair_sd)
    last_bet = e_path(ratios, margin=margin, direction=direction, bets=bets[-1:], pair_sd=pair_sd)
    start = float(path[len(before) - 1]) if len(before) else 1.0
    path, last_bet = path[len(before) :], last_bet[len(before) :]
    for pairs, (e_value, of_last_bet) in enumerate(zip(map(float, path), map(float, last_bet), strict=True), start=1):
        if e_value >= threshold:
            return Decision("confirmed", e_value, pairs, threshold)
        if e_value < futile_below or (futile_by_last_bet and of_last_bet < futile_below and e_value < 1):
            return Decision("futile", e_value, pairs, threshold)
    verdict: Verdict = "undecided" if len(tonight) == most_pairs else "continue"
    return Decision(verdict, float(path[-1]) if len(path) else start, len(tonight), threshold)


def confirming_threshold(candidates: int, error: float = NIGHTLY_ERROR) -> float:
    """candidates / error: what E must reach so that all candidates together err with a chance of at most `error`."""
    if finite_number(candidates, "candidates") < 1:
        raise ValueError(f"candidates {candidates}: at least 1 is needed, this one")
    return candidates / probability(error, "error")


def wins_needed(
    log_ratios: ArrayLike,
    *,
    margin: float,
    candidates: int,
    direction: Direction = "slower",
    bets: Sequence[Bet] = SIGN_BETS,
    pair_sd: float | None = None,
    error: float = NIGHTLY_ERROR,
) -> int:
    """How many further pairs, all won, would confirm: 0 if confirmed. More than are left of most_pairs is out of
    reach."""
    threshold = confirming_threshold(candidates, error)
    ratios = finite_vector(log_ratios, "log ratios of pairs", at_least=0)
    largest = max((bet.reach or 0.0) for bet in bets) * (pair_sd or 0.0)
    win = (finite_number(margin, "margin", at_least=0) + largest + 1.0) * (1 if direction == "slower" else -1)
    wins = 0
    while True:
        path = e_path(
            np.append(ratios, np.full(wins, win)), margin=margin, direction=direction, bets=bets, pair_sd=pair_sd
        )
        if (float(path[-1]) if len(path) else 1.0) >= threshold:
            return wins
        wins += 1


def _payoff(beyond: FloatArray, bet: Bet, pair_sd: float | None) -> FloatArray:
    """h: what a unit of stake gains (+1) or loses (-1)."""
    if bet.reach is None:
        return np.where(beyond > 0, 1.0, -1.0)
    if pair_sd is None or not np.isfinite(pair_sd) or pair_sd <= 0:
        raise ValueError(
            f"pair_sd {pair_sd}: soft bets need the standard deviation of a pair, above 0, known beforehand"
        )
    return np.clip(beyond / (bet.reach * pair_sd), -1.0, 1.0)
