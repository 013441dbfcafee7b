"""From points in any order to histories: what all formats do alike with missing, doubled, odd and relabelled nights.

Points are kept in arrays of numbers and in texts that are stored once, 40 bytes a point, so that files larger than
memory can be read as long as their points are not.
"""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from baselines.errors import BaselineError
from baselines.histories.history import Better, Described, History, Reading


class Placed(Protocol):
    """What one run of one machine gave."""

    @property
    def place(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=Placed)
_NOTHING = Described()
_DEFAULT_BETTER: Better = "lower"


@dataclass
class _Points:
    """The points of one series, in the order in which they came."""

    described: Described = _NOTHING
    next_row: int = 0
    positions: array = field(default_factory=lambda: array("q"))
    values: array = field(default_factory=lambda: array("d"))
    kinds: array = field(default_factory=lambda: array("l"))  # which unit and workload
    times: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


class Gathering:
    """Takes points one by one, and gives histories."""

    def __init__(self) -> None:
        self._series: dict[str, _Points] = {}
        self._texts: dict[str, str] = {}
        self._kinds: dict[tuple[str, str], int] = {}
        self.left_out: list[str] = []  # files of a folder that cannot be read, and why

    @property
    def series(self) -> list[str]:
        return list(self._series)

    def add_in_order(self, runs: "Iterable[R]", add: "Callable[[Gathering, R, int], None]") -> None:
        """Add the runs of each place (runs are in the order of their `place`), a night each; one that raises
        BaselineError is left out and told."""
        for _, group in groupby(runs, key=lambda run: run.place):
            for position, run in enumerate(group):
                try:
                    add(self, run, position)
                except BaselineError as error:
                    self.left_out.append(str(error))

    def describe(self, series: str, described: Described) -> None:
        """Unit and direction as the format knows them; the last call counts."""
        self._points(series).described = described

    def add(
        self,
        series: str,
        value: float | None,
        *,
        position: int | None = None,
        time: str = "",
        commit: str = "",
        unit: str = "",
        workload: str = "",
    ) -> None:
        """One point. Without a position its number among the points of its series is taken. A value of None, nan, zero
        or less is no night: ln is not defined for it."""
        points = self._points(series)
        position = points.next_row if position is None else position
        points.next_row += 1
        if (odd := _why_left_out(value)) or value is None:
            points.left_out[odd] += 1
            return
        points.positions.append(position)
        points.values.append(value)
        points.kinds.append(self._kinds.setdefault((unit, workload), len(self._kinds)))
        points.times.append(self._texts.setdefault(time, time))
        points.commits.append(self._texts.setdefault(commit, commit))

    def histories(self, described: Mapping[str, Described] | None = None) -> Reading:
        """All of them. `described` (of a series.csv) outweighs what the format knows; where it is given, a series that
        it lacks and of which the format knows no direction has none."""
        histories: list[History] = []
        notes = [f"left out: {problem}" for problem in self.left_out]
        for series, points in self._series.items():
            told = _told(series, points.described, described)
            found, said = self._histories_of(series, points, told)
            histories += found
            notes += [f"{series}: {sentence}" for sentence in said]
        for series in described or {}:
            if series not in self._series:
                notes.append(f"{series}: described, but there are no points of it")
        return Reading(tuple(histories), tuple(notes))

    def _points(self, series: str) -> _Points:
        if series not in self._series:
            self._series[series] = _Points()
        return self._series[series]

    def _histories_of(self, series: str, points: _Points, told: Described) -> tuple[list[History], list[str]]:
        notes = []
        if points.left_out:
            parts = ", ".join(f"{count} {reason}" for reason, count in points.left_out.items())
            total = points.left_out.total()
            notes.append(f"{total} {_nights(total)} left out ({parts})")
        if not points.positions:
            notes.append("no night with a value that can be compared")
            return [], notes
        positions = np.frombuffer(points.positions, dtype=np.int64)
        order = np.argsort(positions, kind="stable")
        if (np.diff(positions) < 0).any():
            notes.append("its rows are not in order; they were sorted by position")
        kinds = np.array(points.kinds, dtype=np.int64)[order]
        names = list(self._kinds)
        histories = []
        for begin, end in _runs(kinds):
            chosen = order[begin:end]
            unit = names[kinds[begin]][0] or told.unit or ""
            history, doubled = _merge(series, unit, told.better or _DEFAULT_BETTER, points, positions, chosen)
            if doubled:
                notes.append(f"{doubled} {_nights(doubled)} more than once; the median of each counts")
            if histories:
                what = _what_changed(names[kinds[begin - 1]], names[kinds[begin]])
                notes.append(f"{what} at {history.positions[0]}; a new history begins there")
            histories.append(history)
        return histories, notes


def _told(series: str, known: Described, described: Mapping[str, Described] | None) -> Described:
    if described is None:
        return known
    given = described.get(series)
    if given is None:
        return Described(known.unit, known.better or "unknown")
    return Described(given.unit or known.unit, given.better or known.better)


def _why_left_out(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "without a value"
    if math.isinf(value):
        return "infinite"
    if value == 0:
        return "zero"
    return "negative" if value < 0 else ""


def _runs(kinds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Where neighbours are alike: begin and end of each."""
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1), len(kinds)]
    yield from pairwise(edges)


def _merge(
    series: str,
    unit: str,
    better: Better,
    points: _Points,
    positions: NDArray[np.int64],
    chosen: NDArray[np.intp],
) -> tuple[History, int]:
    """One point a position: of several the median, and time and commit of the last."""
    values = np.frombuffer(points.values, dtype=np.float64)[chosen]
    unique, first, counts = np.unique(positions[chosen], return_index=True, return_counts=True)
    merged = values[first].copy()
    doubled = np.flatnonzero(counts > 1)
    for index in doubled:
        merged[index] = np.median(values[first[index] : first[index] + counts[index]])
    last = chosen[first + counts - 1]
    history = History(
        series=series,
        unit=unit,
        better=better,
        positions=unique,
        times=_picked(points.times, last),
        commits=_picked(points.commits, last),
        values=merged,
    )
    return history, len(doubled)


def _picked(texts: Sequence[str], indices: NDArray[np.intp]) -> tuple[str, ...]:
    return tuple(texts[index] for index in indices)


def _what_changed(before: tuple[str, str], after: tuple[str, str]) -> str:
    if before[0] != after[0]:
        return f"its unit changes from {before[0] or 'none'} to {after[0] or 'none'}"
    return f"its benchmark changes from version {before[1] or 'none'} to {after[1] or 'none'}"


def _nights(count: int) -> str:
    return "night" if count == 1 else "nights"
