"""What a score is made of: which tests moved it, by how much, and what a total means in time."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from score.v1 import TARGET, ScoredTest, ratio_of

TOP = 10

# Below this a difference in time is not worth a number.
_SAME_TIME_PERCENT = 0.05


@dataclass(frozen=True)
class Contribution:
    """One test's part in the total; ln(total / 1000) is the sum of all contributions."""

    test: str
    reference: float  # seconds per iteration
    result: float  # seconds per iteration
    ratio: float  # reference / result: above 1 is faster
    weight: float
    contribution: float  # weight * ln(ratio)
    points: float  # what the total would move by if this test alone had changed

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def contributions(tests: Iterable[ScoredTest]) -> tuple[Contribution, ...]:
    """Every scored test, the one that moved the total most first."""
    return tuple(
        sorted(map(_contribution, tests), key=lambda moved: (-abs(moved.contribution), moved.test)),
    )


def top_movers(ranked: Iterable[Contribution], count: int = TOP) -> tuple[Contribution, ...]:
    """The first `count` of those that moved the total at all."""
    return tuple(moved for moved in ranked if moved.contribution)[:count]


def _contribution(scored: ScoredTest) -> Contribution:
    contribution = scored.weight.total * scored.log_ratio
    return Contribution(
        test=scored.experiment.id,
        reference=scored.reference,
        result=scored.result,
        ratio=ratio_of(scored.log_ratio),
        weight=scored.weight.total,
        contribution=contribution,
        points=TARGET * math.expm1(contribution),
    )


def time_change_percent(total: float) -> float:
    """Change in time that `total` stands for, in percent of the reference; above zero is more time.

    The score is a ratio of times upside down: 900 is 1000/900 of the time, 11.1 % more, and not 10 %.
    """
    return 100 * (TARGET / total - 1)


def time_sentence(total: float) -> str:
    percent = time_change_percent(total)
    if abs(percent) < _SAME_TIME_PERCENT:
        meaning = f"the same time (within {_SAME_TIME_PERCENT} %) as"
    else:
        meaning = f"{abs(percent):.1f} % {'more' if percent > 0 else 'less'} time than"
    return f"A total of {total:.2f} means: on weighted geometric average a test took {meaning} in the reference."
