"""What can be measured again in a night, on the machine of the night or on another one of its class."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torchbenchmark.records import Status

LogRatios = Mapping[
    str, float
]  # by channel: ln(head / base) of one pair of fresh processes, positive where head is slower
Values = Mapping[str, Sequence[float]]  # by channel: one value a fresh process, in the channel's unit


@dataclass(frozen=True)
class PairsWanted:
    """Pairs of one test: a fresh zygote of either build in each, in the order of a coin."""

    test: str
    base: str  # the build's id
    head: str


@dataclass(frozen=True)
class Ended:
    """How one fresh process of a test ended."""

    status: Status
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)  # by channel, of one that ended ok


# Asked after every round with the pairs so far, one list per wanted: which of them, by index, need no more.
Decided = Callable[[Sequence[Sequence[LogRatios]]], Collection[int]]


class Bench(Protocol):
    """Asked in the same order after a kill, a bench gives again what it had measured, and measures the rest."""

    @property
    def runners(self) -> int:
        """How many machines can be asked tonight; 0 is the one that the nightly ran on."""

    def has(self, build: str, runner: int = 0) -> bool:
        """Whether a build can still be measured on that machine."""

    def pairs(
        self, wanted: Sequence[PairsWanted], rounds: int, decided: Decided, runner: int = 0
    ) -> Sequence[Sequence[LogRatios]]:
        """Up to so many pairs of each wanted; a pair that failed on either side is left out."""

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        """A build measured tonight on the machine of the nightly: so many processes of each test, each of a zygote of
        its own. A test that failed is left out."""

    def one_by_one(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Sequence[Ended]]:
        """The same, how each of the processes ended: a test that failed is measured as often as any other."""
