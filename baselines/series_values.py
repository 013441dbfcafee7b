"""The series of a night as arrays: one value per comparable night and series, for the screen."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.rolling import ValidNights, is_usable
from baselines.screening.runners import on_one_runner
from baselines.series import NightSummary, Statistic, TestSummary, segment
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
    """Every series that tonight has a value of. `history` is oldest first, without tonight; `valid` says per test which
    nights count."""
    found = []
    for test in tonight.ok_tests:
        for channel in screened_channels(tonight.tests[test]):
            comparable = segment(tonight, history, test, channel).nights
            nights, values, errors = [], [], []
            for night in (*comparable, tonight):
                value = _value(night, test, channel, None if night is tonight else valid[test])
                if value is not None:
                    nights.append(night)
                    values.append(value)
                    errors.append(_error(night.tests[test], channel))
            if nights and nights[-1] is tonight:
                error = statistics.median(errors)
                found.append(SeriesValues(test, channel, tuple(nights), np.array(values), error))
    return found


def _value(night: NightSummary, test: str, channel: str, valid: ValidNights | None) -> float | None:
    summary = night.tests.get(test)
    if summary is None or not summary.ok or channel not in summary.channels:
        return None
    if valid is not None and (not valid.covers(night) or valid.mask_of(night) is not None or summary.throttled):
        return None
    value = summary.channels[channel].location(statistic_of(channel))
    return value if is_usable(channel, value) and value > 0 else None


def _error(summary: TestSummary, channel: str) -> float:
    """From the spread of the processes, which a night's value is made of."""
    processes = getattr(summary.channels[channel], statistic_of(channel))
    if len(processes) < 2 or min(processes) <= 0:
        return 0.0
    logs = list(map(math.log, processes))
    mean = math.fsum(logs) / len(logs)
    return math.sqrt(math.fsum((one - mean) ** 2 for one in logs) / (len(logs) - 1) / len(logs))
