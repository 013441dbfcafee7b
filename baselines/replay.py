"""Histories through the screen, night by night, and what it would have reported. `detections.csv` holds the answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from baselines.histories import Better, History
from baselines.histories.csv_files import write_csv
from baselines.screening import KnobName
from baselines.screening.hindsight import segment_again
from baselines.screening.shifts import KNOBS, Shift, replay

DAYS_A_YEAR = 365
_LARGEST_LOG = 700.0  # exp of more is no float; such an effect is no measurement either

Kind = Literal["regression", "improvement", "change"]

_COLUMNS = (
    *("series", "reported_i", "onset_i", "onset_lo", "onset_hi", "direction"),
    *("effect_pct", "ci_lo_pct", "ci_hi_pct", "score", "kind"),
)


@dataclass(frozen=True)
class Detection:
    """A report. Positions are the file's own, effects in %; positive is larger values, better or not."""

    reported: int
    onset: int  # the first night of the new level
    onset_low: int
    onset_high: int
    effect_pct: float
    low_pct: float  # 95 %
    high_pct: float
    score: float
    kind: Kind  # change: nobody said which direction is better

    @property
    def direction(self) -> Literal["up", "down"]:
        return "up" if self.effect_pct > 0 else "down"


@dataclass(frozen=True)
class Replayed:
    """A history and its reports, oldest first."""

    history: History
    detections: tuple[Detection, ...]


@dataclass(frozen=True)
class Stretch:
    """The nights between two reported onsets; first and last are positions."""

    first: int
    last: int
    nights: int
    level: float  # the median
    detection: Detection | None  # what began it


def replay_histories(histories: Sequence[History], knob: KnobName, *, hindsight: bool = False) -> list[Replayed]:
    """What each night would have reported, given the nights before it and itself. The order is kept.

    `hindsight`: what the last night says of the whole history instead, where a night knows those after it too.
    """
    logs = [np.log(history.values) for history in histories]
    shifts = segment_again(logs, KNOBS[knob]) if hindsight else replay(logs, KNOBS[knob])
    return [
        Replayed(history, tuple(_detection(history, shift) for shift in found))
        for history, found in zip(histories, shifts, strict=True)
    ]


def stretches(replayed: Replayed) -> list[Stretch]:
    """The history cut at the onsets of its reports."""
    history = replayed.history
    began: dict[int, Detection | None] = {0: None}
    for detection in replayed.detections:
        began[int(np.searchsorted(history.positions, detection.onset))] = detection
    begins = sorted(began)
    return [
        Stretch(
            first=int(history.positions[begin]),
            last=int(history.positions[end - 1]),
            nights=end - begin,
            level=float(np.median(history.values[begin:end])),
            detection=began[begin],
        )
        for begin, end in zip(begins, [*begins[1:], history.nights], strict=True)
    ]


def series_years(histories: Sequence[History]) -> float:
    """How long the series were watched, all together; a night is a day."""
    return sum(history.nights for history in histories) / DAYS_A_YEAR


def write_detections(path: Path, replayed: Sequence[Replayed]) -> None:
    rows = [_row(one.history.series, detection) for one in replayed for detection in one.detections]
    write_csv(path, _COLUMNS, rows)


def _detection(history: History, shift: Shift) -> Detection:
    def position(index: int) -> int:
        return int(history.positions[index])

    return Detection(
        reported=position(shift.reported),
        onset=position(shift.onset),
        onset_low=position(shift.onset_low),
        onset_high=position(shift.onset_high),
        effect_pct=_percent(shift.effect),
        low_pct=_percent(shift.low),
        high_pct=_percent(shift.high),
        score=shift.score,
        kind=_kind(history.better, shift.effect),
    )


def _percent(effect: float) -> float:
    return 100 * math.expm1(min(effect, _LARGEST_LOG))


def _kind(better: Better, effect: float) -> Kind:
    if better == "unknown":
        return "change"
    return "regression" if (effect > 0) == (better == "lower") else "improvement"


def _row(series: str, detection: Detection) -> tuple[str, ...]:
    return (
        series,
        *(str(one) for one in (detection.reported, detection.onset, detection.onset_low, detection.onset_high)),
        detection.direction,
        *(f"{one:.6g}" for one in (detection.effect_pct, detection.low_pct, detection.high_pct, detection.score)),
        detection.kind,
    )
