"""The location of one process: its iterations in one number, for iterations are no replicates.

Iterations of one process share its memory layout and its host's mood, so 60 of them are one observation. A test over
them calls identical builds different in up to half of the cases (docs/statistics.md).
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from torchbenchmark.statistics.samples import finite_vector

Statistic = Literal["median", "p20", "trimmed_mean"]
Clock = Literal["host", "device"]

TRIM = 0.2  # of the iterations, at each end

# What disturbs an iteration on the host's clock only ever adds to it, and may hit most iterations of a process: a low
# percentile looks beneath. A device's own clock has no such side, and there the middle is the steadiest.
STATISTIC_OF_CLOCK: dict[Clock, Statistic] = {"host": "p20", "device": "median"}


def collapse_to_location(iterations: ArrayLike, statistic: Statistic = "median") -> float:
    """One value for one process, in the unit of its iterations.

    iterations: shape (n,), n >= 1, in any unit. `median`; `p20`, the 20th percentile, linear between order statistics
    (Hyndman and Fan 1996, type 7), as the records have it; `trimmed_mean`, the mean without the floor(n / 5) smallest
    and the floor(n / 5) largest (Tukey and McLaughlin 1963). All three move by c when every iteration does, and are
    multiplied by c > 0 when every iteration is. The minimum is not offered: it grows smaller with the number of
    iterations, so two builds of different speed would be timed by different rules within one time budget.
    """
    values = finite_vector(iterations, "iterations of a process")
    if statistic == "median":
        return float(np.median(values))
    if statistic == "p20":
        return float(np.percentile(values, 20))
    if statistic == "trimmed_mean":
        cut = int(TRIM * len(values))
        return float(np.sort(values)[cut : len(values) - cut].mean())
    raise ValueError(f"statistic {statistic!r}: choose median, p20 or trimmed_mean")


def statistic_for(clock: Clock) -> Statistic:
    """The location that spreads least between processes of one build, by the clock that times the iterations.

    `host` for latency and CPU time, `device` for kernel time and CUDA-graph replays. Measured: docs/statistics.md.
    """
    if clock not in STATISTIC_OF_CLOCK:
        raise ValueError(f"clock {clock!r}: choose host or device")
    return STATISTIC_OF_CLOCK[clock]
