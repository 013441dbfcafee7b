"""Reports counted by the judge of the labelled histories, with bootstrap intervals over series."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evalkit
import numpy as np

from baselines.screening.shifts import Shift

REPORTS_OF_SERIES = dict[str, list[tuple[int, int]]]  # (onset, reported)
ROUNDS, SEED = 1000, 1
Interval = tuple[float, float]


@dataclass(frozen=True)
class Scored:
    counts: np.ndarray  # one row a series, as evalkit counts
    delays: list[int]
    blind_labels: np.ndarray | None  # by size

    def of(self, name: str) -> float:
        return evalkit.summary(self.counts)[name]

    def interval(self, name: str) -> Interval:
        return bootstrap(len(self.counts), lambda picked: evalkit.summary(self.counts[picked])[name])

    def blind_by_size(self) -> str:
        return " ".join(f"{share:.2f}" for share in self.counts.sum(0)[10:14] / self.blind_labels)

    def delay(self) -> tuple[float, float]:
        return (float(np.median(self.delays)), float(np.quantile(self.delays, 0.9))) if self.delays else (0.0, 0.0)


def score(data: evalkit.Data, reports: REPORTS_OF_SERIES) -> Scored:
    counts, delays, _, _ = evalkit.counts(data, reports)
    return Scored(counts, delays, evalkit.blind_n(data) if data.what == "sandmark" else None)


def reports_of(names: Sequence[str], shifts: Sequence[Sequence[Shift]], least: float = 0.0) -> REPORTS_OF_SERIES:
    """`least`: of the effect, as a relative change."""
    return {
        name: [(shift.onset, shift.reported) for shift in found if abs(np.expm1(shift.effect)) >= least]
        for name, found in zip(names, shifts, strict=True)
    }


def difference(ours: Scored, theirs: Scored, name: str) -> tuple[float, Interval]:
    """Ours minus theirs, the same series drawn for both."""

    def less(picked: np.ndarray) -> float:
        return evalkit.summary(ours.counts[picked])[name] - evalkit.summary(theirs.counts[picked])[name]

    size = len(ours.counts)
    return less(np.arange(size)), bootstrap(size, less)


def bootstrap(size: int, statistic: Callable[[np.ndarray], float]) -> Interval:
    """95 % of the statistic over draws of so many series, with replacement."""
    low, high = np.quantile(drawn(size, statistic), [0.025, 0.975])
    return float(low), float(high)


def drawn(size: int, statistic: Callable[[np.ndarray], Any]) -> np.ndarray:
    """The statistic, or several, of each draw; always the same draws."""
    rng = np.random.default_rng(SEED)
    return np.array([statistic(rng.integers(0, size, size)) for _ in range(ROUNDS)])


def rate_interval(hits: np.ndarray, of: np.ndarray) -> tuple[float, Interval]:
    """Of sums over series: hits and what they are counted against, one entry a series."""

    def rate(picked: np.ndarray) -> float:
        return float(hits[picked].sum() / max(of[picked].sum(), 1e-9))

    return rate(np.arange(len(hits))), bootstrap(len(hits), rate)


def sandmark(data: Path) -> evalkit.Data:
    return evalkit.load(str(data), "sandmark")
