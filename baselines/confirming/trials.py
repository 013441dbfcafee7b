"""Pairs against chance: a candidate is confirmed by an e-process, asked again elsewhere, and given an interval."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from baselines.confirming.bench import Bench, LogRatios, PairsWanted
from baselines.confirming.rules import Rules
from baselines.confirming.seen import SeriesKey
from baselines.confirming.state import ChangeKind
from torchbenchmark.statistics.hodges_lehmann import hodges_lehmann
from torchbenchmark.statistics.sign_e_process import Decision, Verdict, decide
from torchbenchmark.statistics.signed_rank import signed_rank_interval


@dataclass(frozen=True)
class Trial:
    """A series to be measured again, with all that must be fixed before the first pair."""

    key: SeriesKey
    kind: ChangeKind
    base: str  # the builds' ids
    head: str
    pair_sd: float
    candidates: int  # admitted in the night whose error pays for it
    carried: tuple[float, ...] = ()

    def judged(self, ratios: Sequence[float], rules: Rules) -> Decision:
        return decide(
            ratios,
            margin=rules.margin_of(self.key.channel, self.key.test),
            candidates=self.candidates,
            direction="slower" if self.kind == "regression" else "faster",
            bets=rules.bets,
            pair_sd=self.pair_sd,
            carried=self.carried,
            error=rules.error,
            futile_below=rules.futile_below,
            futile_by_last_bet=rules.futile_by_last_bet,
            most_pairs=rules.most_pairs,
        )

    @property
    def wanted(self) -> PairsWanted:
        return PairsWanted(self.key.test, self.base, self.head)


@dataclass(frozen=True)
class Tried:
    """What came of a trial."""

    trial: Trial
    decision: Decision
    log_ratios: tuple[float, ...]  # tonight's
    begun: bool = True  # False: the budget was spent before its first pair

    @property
    def effect(self) -> float:
        return hodges_lehmann(self.log_ratios) if self.log_ratios else 0.0


def try_all(trials: Sequence[Trial], bench: Bench, rules: Rules, most_pairs: float) -> tuple[list[Tried], int]:
    """Measure trials, the best first, until each is decided. Once so many pairs are spent, no other is begun.

    Returns them with the number of pairs of processes. Trials of one test and base share their pairs.
    """
    wanted = list(_each_once(trials))
    found: list[Tried] = []
    spent = 0
    for first in range(0, len(wanted), rules.lanes):
        batch = wanted[first : first + rules.lanes]
        inside = [[trial for trial in trials if trial.wanted == one] for one in batch]
        left = most_pairs - spent
        measured: Sequence[Sequence[LogRatios]] = [()] * len(batch)
        if left >= 1:

            def decided(so_far: Sequence[Sequence[LogRatios]], inside=inside) -> Collection[int]:
                return [
                    index
                    for index, pairs in enumerate(so_far)
                    if all(
                        trial.judged(ratios_of(trial.key.channel, pairs), rules).verdict != "continue"
                        for trial in inside[index]
                    )
                ]

            measured = bench.pairs(batch, rules.most_pairs, decided)
        spent += sum(map(len, measured))
        for several, pairs in zip(inside, measured, strict=True):
            for trial in several:
                ratios = ratios_of(trial.key.channel, pairs)
                found.append(Tried(trial, trial.judged(ratios, rules), ratios, begun=left >= 1))
    return found, spent


def _each_once(trials: Sequence[Trial]) -> dict[PairsWanted, int]:
    """What is wanted, with its index: trials of two channels of a test share their pairs."""
    return {wanted: index for index, wanted in enumerate(dict.fromkeys(trial.wanted for trial in trials))}


def ratios_of(channel: str, pairs: Sequence[LogRatios]) -> tuple[float, ...]:
    """Those that the channel has a number in: one that read zero on a side has none."""
    ratios = (pair.get(channel, math.nan) for pair in pairs)
    return tuple(ratio for ratio in ratios if math.isfinite(ratio))


@dataclass(frozen=True)
class Again:
    """A confirmed change asked again: whether it is still there, and its interval from pairs that decided nothing."""

    trial: Trial
    persistent: bool
    answered: bool = True  # False: too few pairs ended well to say either
    effect: float = 0.0  # ln(head / base)
    low: float = 0.0
    high: float = 0.0
    log_ratios: tuple[float, ...] = ()  # that the interval is of


def ask_again(trials: Sequence[Trial], bench: Bench, rules: Rules, runner: int) -> tuple[list[Again], int]:
    """Which changes are there on another night or runner, with their intervals; and the pairs of processes spent."""
    verdicts, spent = _asked(trials, bench, rules, runner)
    still = [trial for trial, verdict in zip(trials, verdicts, strict=True) if verdict == "confirmed"]
    shown = intervals(still, bench, rules, runner)
    found = iter(again for again, _ in shown)
    both = [
        next(found) if verdict == "confirmed" else Again(trial, False, answered=verdict != "continue")
        for trial, verdict in zip(trials, verdicts, strict=True)
    ]
    return both, spent + sum(count for _, count in shown)


def are_there(trials: Sequence[Trial], bench: Bench, rules: Rules, runner: int) -> tuple[list[bool], int]:
    """Whether new pairs show each change, one by one and at a smaller error; and the pairs of processes spent."""
    verdicts, spent = _asked(trials, bench, rules, runner)
    return [verdict == "confirmed" for verdict in verdicts], spent


def _asked(trials: Sequence[Trial], bench: Bench, rules: Rules, runner: int) -> tuple[list[Verdict], int]:
    """The verdict of new pairs on each, "continue" where too few of them ended well."""
    once = replace(
        rules,
        error=1 / rules.persistent_at,
        futile_below=1 / rules.persistent_at,
        futile_by_last_bet=False,
        most_pairs=rules.persistent_pairs,
    )
    trials = [replace(trial, candidates=1, carried=()) for trial in trials]
    wanted = _each_once(trials)

    def decided(so_far: Sequence[Sequence[LogRatios]]) -> Collection[int]:
        left = {
            trial.wanted
            for trial in trials
            if trial.judged(ratios_of(trial.key.channel, so_far[wanted[trial.wanted]]), once).verdict == "continue"
        }
        return [index for one, index in wanted.items() if one not in left]

    if not trials:
        return [], 0
    measured = bench.pairs(list(wanted), once.most_pairs, decided, runner)
    verdicts = [
        trial.judged(ratios_of(trial.key.channel, measured[wanted[trial.wanted]]), once).verdict for trial in trials
    ]
    return verdicts, sum(map(len, measured))


def intervals(trials: Sequence[Trial], bench: Bench, rules: Rules, runner: int = 0) -> list[tuple[Again, int]]:
    """The effect and its interval from new pairs, none of which decided anything; with the pairs that each took, those
    that several share counted for the first of them."""
    if not trials:
        return []
    wanted = _each_once(trials)
    measured = bench.pairs(list(wanted), rules.interval_pairs, lambda so_far: (), runner)
    found: list[tuple[Again, int]] = []
    counted: set[PairsWanted] = set()
    for trial in trials:
        pairs = measured[wanted[trial.wanted]]
        spent = 0 if trial.wanted in counted else len(pairs)
        counted.add(trial.wanted)
        ratios = ratios_of(trial.key.channel, pairs)
        try:
            interval = signed_rank_interval(ratios, rules.level)
        except ValueError:  # too few pairs ended well for an interval of this level
            found.append((Again(trial, False, answered=False), spent))
            continue
        again = Again(
            trial, True, effect=hodges_lehmann(ratios), low=interval.low, high=interval.high, log_ratios=ratios
        )
        found.append((again, spent))
    return found
