"""A history as the screen takes it: one series, night after night, whatever file it came from."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Better = Literal["lower", "higher", "unknown"]


@dataclass(frozen=True)
class Described:
    """What is known of a series beside its points; None is not told."""

    unit: str | None = None
    better: Better | None = None


@dataclass(frozen=True)
class History:
    """The nights of a series that have a value which can be compared, oldest first. All of length n.

    A series whose unit changes has several of them: values of two units have no ratio.
    """

    series: str
    unit: str
    better: Better
    positions: NDArray[np.int64]  # strictly increasing; the file's own numbers of its nights
    times: tuple[str, ...]  # as the file has them, "" where it has none
    commits: tuple[str, ...]
    values: NDArray[np.float64]  # finite and positive

    @property
    def nights(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class Reading:
    """What a file gave: histories in the order of the file, and what was done about its odd nights."""

    histories: tuple[History, ...]
    notes: tuple[str, ...]  # one sentence a series and reason
