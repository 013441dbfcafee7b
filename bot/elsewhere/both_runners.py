"""A bench of two machines of a class, each of which answers as its own runner 0. The second is asked when the first has
answered all, by another job (asking.py)."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from baselines.confirming.bench import Bench, Decided, Ended, LogRatios, PairsWanted, Values


class BothRunners:
    """The second is made when it is first asked: a night that confirms nothing needs none."""

    runners = 2

    def __init__(self, first: Bench, second: Callable[[], Bench]) -> None:
        self.first = first
        self._make_second = second

    @cached_property
    def second(self) -> Bench:
        return self._make_second()

    def _on(self, runner: int) -> Bench:
        return self.second if runner else self.first

    def has(self, build: str, runner: int = 0) -> bool:
        return self._on(runner).has(build)

    def pairs(
        self, wanted: Sequence[PairsWanted], rounds: int, decided: Decided, runner: int = 0
    ) -> Sequence[Sequence[LogRatios]]:
        return self._on(runner).pairs(wanted, rounds, decided)

    def again(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Values]:
        return self.first.again(tests, build, processes)

    def one_by_one(self, tests: Sequence[str], build: str, processes: int) -> Mapping[str, Sequence[Ended]]:
        return self.first.one_by_one(tests, build, processes)
