"""The series of a night as arrays: one value per comparable night and series, for the screen."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from baselines.rolling import Mask, ValidNights, valid_within
from baselines.screening import WINDOW
from baselines.screening.runners import on_one_runner
from baselines.series import (
    ChannelSummary,
    NightSummary,
    Statistic,
    TestSummary,
    comparable_nights,
    is_of_environment,
)
from torchbenchmark.channels import CHANNELS

# The probe is the host's speed; a rate is the inverse of a time that is there.
NOT_SCREENED = ("host_probe", "throughput")


@dataclass(frozen=True)
class SeriesValues:
    """One channel of one test over the nights that have a value, oldest first, tonight last."""

    test: str
    channel: str
    nights: tuple[NightSummary, ...]
    values: NDArray[np.float64]  # in the channel's unit, all positive
    # Standard error of a night's value from its processes, of the logarithm; 0 where a night has one process.
    error: float

    @property
    def logs(self) -> NDArray[np.float64]:
        """ln of the values, larger being slower (or more), as tonight's runner would have had them."""
        logs = np.log(self.values)
        aligned = on_one_runner(logs, [night.runner for night in self.nights])
        return aligned if CHANNELS[self.channel].better == "lower" else -aligned


def screened_channels(test: TestSummary) -> list[str]:
    """The statistical channels of a test that are screened."""
    return [
        name for name in test.channels if name in CHANNELS and not CHANNELS[name].exact and name not in NOT_SCREENED
    ]


def statistic_of(channel: str) -> Statistic:
    """How a night's samples become one value: what disturbs an iteration on the host's clock only adds to it."""
    kind = CHANNELS[channel]
    return "p20" if kind.unit == "s" and kind.side == "cpu" else "median"


def series_of_night(
    tonight: NightSummary, history: Sequence[NightSummary], valid: Mapping[str, ValidNights]
) -> list[SeriesValues]:
    """Every series that tonight has a value of, with its newest nights. `history` is oldest first, without tonight;
    `valid` says per test which nights count."""
    alike = [is_of_environment(night, tonight) for night in history]
    found = []
    for test in tonight.ok_tests:
        gathered = [_Gathered(tonight, test, channel) for channel in screened_channels(tonight.tests[test])]
        gathered = [one for one in gathered if one.values]
        nights: Iterable[NightSummary] = comparable_nights(tonight, history, alike, test)
        if valid[test].masks:
            nights = list(nights)
            for one in gathered:
                one.masks = valid_within(valid[test], _began(one, nights, history)).masks
        _gather(gathered, nights, valid[test])
        found += [one.series() for one in gathered]
    return found


def _began(one: "_Gathered", nights: Sequence[NightSummary], history: Sequence[NightSummary]) -> datetime | None:
    """When the segment of a series began, if something ended it; `nights` are those of its test, newest first."""
    own = list(itertools.takewhile(one.has_unit_of, nights))
    return own[-1].started if own and own[-1] is not history[0] else None


def _gather(gathered: "Sequence[_Gathered]", nights: Iterable[NightSummary], valid: ValidNights) -> None:
    """Fill series of one test with its nights, newest first, until each is full or its unit was another."""
    growing = list(gathered)
    for night in nights:
        if not growing:
            return
        summary = night.tests.get(growing[0].test)
        if summary is None:
            continue
        counts = summary.is_sound and valid.covers(night)
        for one in growing[:]:
            there = summary.channels.get(one.channel)
            if there is None:
                continue
            if there.unit != one.unit:
                growing.remove(one)
            elif counts and not (one.masks and any(mask.holds(night.started) for mask in one.masks)):
                one.add(night, there)
                if len(one.values) == WINDOW:
                    growing.remove(one)


class _Gathered:
    """What is known so far of a series, newest night first."""

    def __init__(self, tonight: NightSummary, test: str, channel: str) -> None:
        self.test, self.channel = test, channel
        summary = tonight.tests[test].channels[channel]
        self.unit, self._statistic = summary.unit, statistic_of(channel)
        self.masks: tuple[Mask, ...] = ()
        self.nights: list[NightSummary] = []
        self.values: list[float] = []
        self._processes: list[tuple[float, ...]] = []
        self.add(tonight, summary)

    def has_unit_of(self, night: NightSummary) -> bool:
        summary = night.tests.get(self.test)
        there = summary.channels.get(self.channel) if summary is not None else None
        return there is None or there.unit == self.unit

    def add(self, night: NightSummary, summary: ChannelSummary) -> None:
        """The night's value, if a ratio can be formed with it."""
        value = summary.location(self._statistic)
        if value > 0:  # what is not finite is nan there
            self.nights.append(night)
            self.values.append(value)
            self._processes.append(getattr(summary, self._statistic))

    def series(self) -> SeriesValues:
        values = np.array(self.values[::-1])
        return SeriesValues(self.test, self.channel, tuple(reversed(self.nights)), values, _error(self._processes))


def _error(nights: Sequence[tuple[float, ...]]) -> float:
    """The median over the nights of what the spread of a night's processes says of their mean."""
    errors = np.zeros(len(nights))
    counts = np.fromiter(map(len, nights), dtype=np.int64)
    for count in set(counts.tolist()) - {0, 1}:
        rows = np.flatnonzero(counts == count)
        processes = np.array([nights[row] for row in rows])
        positive = (processes > 0).all(axis=1)
        errors[rows[positive]] = np.log(processes[positive]).std(axis=1, ddof=1) / math.sqrt(count)
    return float(np.median(errors))
