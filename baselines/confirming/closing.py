"""Whether a change is gone: pairs of the build from before it against tonight's. They are the last step before an alert
is closed, as good nights alone may be those of a quiet machine, and they decide where a night's figures do not."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from baselines.confirming.bench import Bench, LogRatios, PairsWanted
from baselines.confirming.rules import Rules
from baselines.confirming.shares import gone_below, log_of, share_of
from baselines.confirming.state import Closing, Gone
from baselines.confirming.trials import ratios_of
from torchbenchmark.statistics.hodges_lehmann import hodges_lehmann
from torchbenchmark.statistics.sign_e_process import SIGN_BETS, Direction, e_path

SURE = 20.0  # E of either answer: each is wrong at most once in twenty
FEWEST_PAIRS = 6  # that end well, all on one side, make E twenty

Answer = Literal["gone", "there", "undecided", "continue"]


@dataclass(frozen=True)
class Question:
    """A change of one test that may be gone."""

    test: str
    channel: str
    base: str  # the build from before it
    of: datetime  # the night of that build
    effect: float  # as confirmed, as a share; slower is positive
    beyond: float | None = None  # a share: what is slower by more is there still; None: half of the effect

    def wanted(self, head: str) -> PairsWanted:
        return PairsWanted(self.test, self.base, head)

    def limit(self, rules: Rules) -> float:
        """What the change is below when it is gone, in log units. Up to the margin it is nobody's business anyway."""
        limit = gone_below(self.effect) if self.beyond is None else self.beyond
        return max(log_of(limit), rules.margin_of(self.channel, self.test))


@dataclass(frozen=True)
class AskedClosing:
    """An alert that is to be closed, and what is asked of its tests first; of none, where no build from before it is
    known. Or one in doubt, as tonight's figures may be the machine's."""

    alert: str  # its key
    questions: tuple[Question, ...]
    doubted: bool = False


def ask_closings(
    closings: Sequence[AskedClosing], head: str, bench: Bench, rules: Rules
) -> tuple[tuple[Closing, ...], int]:
    """What pairs say of each alert, and how many of them were measured. Where those of a night are spent, the others
    are asked the next one; what needs none is told."""
    found: list[Closing] = []
    spent = 0
    for one in closings:
        if spent >= rules.pairs_a_night and any(question.base != head for question in one.questions):
            continue
        told, pairs = ask_whether_gone(one.questions, head, bench, rules)
        found.append(Closing(alert=one.alert, asked=told, doubted=one.doubted))
        spent += pairs
    return tuple(found), spent


def answer(ratios: Sequence[float], limit: float, most_pairs: int) -> Answer:
    """What pairs say of a change, at the first of them that decides: whether their median is below the limit or above.

    Two sign e-processes on the same pairs, one of each hypothesis. They assume nothing of the spread, and as either may
    be looked at after every pair, so may both.
    """
    beyond = [ratio - limit for ratio in ratios[:most_pairs]]
    answers: tuple[tuple[Answer, Direction], ...] = (("gone", "faster"), ("there", "slower"))
    paths = {told: e_path(beyond, margin=0.0, direction=side, bets=SIGN_BETS) for told, side in answers}
    for pair in range(len(beyond)):
        for told, path in paths.items():
            if path[pair] >= SURE:
                return told
    return "undecided" if len(beyond) >= most_pairs else "continue"


def ask_whether_gone(
    questions: Sequence[Question], head: str, bench: Bench, rules: Rules
) -> tuple[tuple[Gone, ...], int]:
    """What pairs say of each question, and how many of them were measured. A change whose base is not to be had, or of
    which too few pairs end well, is not measured. Against itself a build need not be: there the change is gone."""
    wanted: dict[PairsWanted, int] = {}
    for one in questions:
        if one.base != head and bench.has(one.base):
            wanted.setdefault(one.wanted(head), len(wanted))

    def told_of(question: Question, measured: Sequence[Sequence[LogRatios]]) -> tuple[float, ...]:
        return ratios_of(question.channel, measured[wanted[question.wanted(head)]])

    asked = [one for one in questions if one.wanted(head) in wanted]

    def decided(so_far: Sequence[Sequence[LogRatios]]) -> Collection[int]:
        left = {
            wanted[one.wanted(head)]
            for one in asked
            if answer(told_of(one, so_far), one.limit(rules), rules.most_pairs) == "continue"
        }
        return [index for index in wanted.values() if index not in left]

    measured = bench.pairs(list(wanted), rules.most_pairs, decided) if wanted else ()
    found = []
    for one in questions:
        if one not in asked:
            told = "gone" if one.base == head else "not measured"
            found.append(Gone(test=one.test, channel=one.channel, base=one.of, answer=told))
            continue
        ratios = told_of(one, measured)
        said = answer(ratios, one.limit(rules), rules.most_pairs)
        if said == "continue":  # pairs failed, so that there are not enough
            said = "undecided" if len(ratios) >= FEWEST_PAIRS else "not measured"
        effect = share_of(hodges_lehmann(ratios)) if ratios else 0.0
        found.append(
            Gone(
                test=one.test,
                channel=one.channel,
                base=one.of,
                answer=said,
                pairs=len(ratios),
                effect=effect,
                limit=share_of(one.limit(rules)),
            )
        )
    return tuple(found), sum(map(len, measured))
