"""What a night looks at: the series of a class as arrays, tonight last, and what each of them spreads by."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from baselines.confirming.state import SeriesKey
from baselines.screening.noise import READS, BoolArray, FloatArray, IntArray, row_medians, running_scale

SMALLEST_NOISE = 5e-4  # of a night, in log units
SMALLEST_PAIR_SD = 5e-4
UNKNOWN_PAIR_SD = 0.02  # of a series of which two nights with one process are known
# Median of chi-squared over its degrees of freedom, by degrees: a median of variances is that much below their mean.
_MEDIAN_SHARE = {1: 0.4549, 2: 0.6931, 3: 0.7887, 4: 0.8392, 5: 0.8703}


@dataclass(frozen=True)
class Seen:
    """The nights of a class, oldest first, tonight last."""

    series: tuple[SeriesKey, ...]
    nights: tuple[datetime, ...]
    builds: tuple[str, ...]  # one a night
    environments: tuple[str, ...]  # one a night: what may move numbers, the runner too where it is not aligned away
    runners: tuple[str, ...]  # one a night
    logs: FloatArray  # (series, nights): ln of the night's value, larger is slower; nan where there is none
    variances: FloatArray  # (series, nights): of ln over the night's processes; nan where there are not two
    processes: int  # of a series in a night
    canary: str = ""  # why the frozen build says that the environment moved; empty: it does not

    @property
    def tonight(self) -> datetime:
        return self.nights[-1]

    @property
    def there(self) -> BoolArray:
        """(series,): which have a value tonight."""
        return np.isfinite(self.logs[:, -1])

    def position(self, night: datetime) -> int:
        return self.nights.index(night)


def night_noise(aligned: FloatArray) -> FloatArray:
    """What a night spreads by, of each row, as one standard deviation: the running scale that tonight does not know.

    aligned: (series, nights), tonight last, shorter rows beginning with nan.
    """
    noise = np.full(len(aligned), np.nan)
    lengths = np.isfinite(aligned).sum(axis=1)
    for length in np.unique(lengths[lengths > 2]):
        rows = np.flatnonzero(lengths == length)
        recent = aligned[rows, -min(length, 64) :]
        noise[rows] = running_scale(recent)[:, -1] / READS
    return np.maximum(noise, SMALLEST_NOISE)


def pair_sds(variances: FloatArray, processes: int) -> FloatArray:
    """What a pair of single processes spreads by, of each row: twice the variance of a night, by their median."""
    with np.errstate(invalid="ignore"):
        share = _MEDIAN_SHARE.get(processes - 1, 0.9)
        return np.maximum(np.sqrt(2 * row_medians(variances) / share), SMALLEST_PAIR_SD)


def right_aligned(logs: FloatArray) -> tuple[FloatArray, IntArray]:
    """The values without the missing nights, tonight last; and of which night each is, -1 where a row has none."""
    there = np.isfinite(logs)
    order = np.argsort(there, axis=1, kind="stable")  # what is missing first
    rows = np.arange(len(logs))[:, None]
    return logs[rows, order], np.where(there[rows, order], order, -1)
