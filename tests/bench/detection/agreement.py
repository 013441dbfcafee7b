"""Whether the nightly, which looks at the last nights without a memory, reports what the replay reports."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markdown_page import table
from scores import sandmark

from baselines.screening.screen import screen_night
from baselines.screening.shifts import KNOBS, Knob, Shift, replay

NEAR = 3  # nights
Report = tuple[int, int]  # onset, and the night that reports it


def measure(data: Path, cache: Path) -> str:
    labelled = sandmark(data)
    histories = [labelled.y[name] for name in labelled.names]
    rows = [
        ["knob", "the replay reports", f"same night and onset within {NEAR}", f"within {NEAR} nights", "not at all"]
    ]
    rows[0].append("the nightly alone")
    for name, knob in KNOBS.items():
        replayed, nightly = replay(histories, knob), nightly_reports(histories, knob)
        counts = np.sum([agreement(*both) for both in zip(replayed, nightly, strict=True)], axis=0)
        total = sum(map(len, replayed))
        rows.append([name, *map(str, (total, counts[0], counts[1], total - counts[1], counts[2]))])
    return (
        f"The {len(histories)} histories above, every night of each screened as the nightly does it (`screen_night`), "
        f"beside the replay.\n\n{table(rows)}"
    )


def nightly_reports(histories: Sequence[np.ndarray], knob: Knob) -> list[list[Report]]:
    found: list[list[Report]] = [[] for _ in histories]
    for night in range(max(map(len, histories))):
        rows = [row for row, history in enumerate(histories) if len(history) > night]
        for row, screened in zip(rows, screen_night([histories[row][: night + 1] for row in rows], knob), strict=True):
            if screened is not None and screened.reported_tonight:
                found[row].append((screened.last_shift.onset, night))
    return found


def agreement(replayed: Sequence[Shift], nightly: Sequence[Report]) -> tuple[int, int, int]:
    """Of the replay's reports, those that the nightly makes in the same night and those within NEAR nights; and those
    of the nightly that the replay has not."""

    def near(shift: Shift, report: Report, nights: int) -> bool:
        return abs(shift.onset - report[0]) <= NEAR and abs(shift.reported - report[1]) <= nights

    return (
        sum(any(near(shift, report, 0) for report in nightly) for shift in replayed),
        sum(any(near(shift, report, NEAR) for report in nightly) for shift in replayed),
        sum(not any(near(shift, report, NEAR) for shift in replayed) for report in nightly),
    )
