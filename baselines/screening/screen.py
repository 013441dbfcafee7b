"""One night's screen of many series: what the night reports, and how much evidence there is in each that it moved.

Stateless: all that is looked at is the last 150 nights of each series, and its last report is found again in them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from baselines.screening import WINDOW
from baselines.screening.evidence import Evidence, drift_evidence, step_evidence
from baselines.screening.noise import SMALLEST, FloatArray, IntArray
from baselines.screening.shifts import Knob, Shift, last_reports, window_scales

MovedAs = Literal["jump", "step", "drift"]


@dataclass(frozen=True)
class Screened:
    """What the screen says of one series tonight. Positions count from the first night given."""

    score: float  # nats: the log-likelihood ratio of a change against none, from the evidence or from tonight's report
    moved_as: MovedAs
    nights: int  # since when it is another level, tonight counted
    effect: float  # ln(new / old), positive: larger values
    level_nights: int  # that the old level is known from
    scale: float  # of a night, before tonight, in log units
    last_shift: Shift | None  # the newest report, tonight's among them
    reported_tonight: bool


def screen_night(
    histories: Sequence[FloatArray], knob: Knob, floors: Sequence[float] | None = None
) -> list[Screened | None]:
    """The screen of the last night of each history: ln of its values, oldest first, none missing.

    `floors`: of the running scale of each, in log units (an A/A table, the spread within nights). None for a history
    with too few nights to say anything.
    """
    if not histories:
        return []
    logs, offsets = _windows(histories)
    least = np.full(len(histories), SMALLEST) if floors is None else np.maximum(SMALLEST, np.asarray(floors))
    scales = window_scales(logs, least)
    reports = last_reports(logs, scales, knob)
    shifts = [several[-1] if several else None for several in reports]
    # A level that was reported tonight is not old yet: the evidence is held against the one before.
    earlier = [[shift.onset for shift in several if shift.reported < WINDOW - 1] for several in reports]
    began = np.array([onsets[-1] if onsets else 0 for onsets in earlier], dtype=np.int64)
    before_tonight = np.where(np.isnan(scales[:, -2]), least, scales[:, -2])
    steps, drifts = (find(logs, before_tonight, began) for find in (step_evidence, drift_evidence))
    return [
        _screened(row, steps, drifts, shifts[row], int(offsets[row]), float(before_tonight[row]))
        for row in range(len(histories))
    ]


def _screened(
    row: int, steps: Evidence, drifts: Evidence, shift: Shift | None, offset: int, scale: float
) -> Screened | None:
    found, moved_as = steps, "jump" if steps.nights[row] == 1 else "step"
    if drifts.score[row] > steps.score[row]:
        found, moved_as = drifts, "drift"
    if not math.isfinite(found.score[row]):
        return None
    reported = shift is not None and shift.reported == WINDOW - 1
    score, nights, effect = float(found.score[row]), int(found.nights[row]), float(found.effect[row])
    # The statistic is a z, and z^2 / 2 is in nats. A report is made once; a jump of tonight to the other side can wait.
    if shift is not None and reported and (shift.score**2 / 2 > score or shift.effect * effect < 0):
        score, nights, effect, moved_as = shift.score**2 / 2, WINDOW - shift.onset, shift.effect, "step"
    return Screened(
        score=score,
        moved_as=moved_as,
        nights=nights,
        effect=effect,
        level_nights=int(found.level_nights[row]),
        scale=scale,
        last_shift=None if shift is None else shift.moved_by(offset),
        reported_tonight=reported,
    )


def _windows(histories: Sequence[FloatArray]) -> tuple[FloatArray, IntArray]:
    """The last nights of all, right-aligned after nan, shape (series, WINDOW); and what to add to a column of them."""
    logs = np.full((len(histories), WINDOW), np.nan)
    offsets = np.zeros(len(histories), dtype=np.int64)
    for row, history in enumerate(histories):
        last = history[-WINDOW:] if len(history) else np.zeros(1)  # of one night nothing can be said either
        logs[row, -len(last) :] = last
        offsets[row] = len(history) - WINDOW
    return logs, offsets
