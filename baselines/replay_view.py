"""What `torchbench replay` prints. Names, units and commits are foreign text: shown without control characters."""

from collections.abc import Iterable, Sequence

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.table import Table
from rich.text import Text

from baselines.histories import History
from baselines.replay import Detection, Replayed, series_years, stretches
from baselines.sparkline import marks, sparkline
from torchbenchmark.foreign_text import one_line

VIEW_WIDTH = 100  # columns, also where the terminal has more: a line of a log is read like one of a terminal
_NAME_WIDTH = 30
_OVERVIEW_SPARK = 20
_COLOURS = {"regression": "red", "improvement": "green", "change": "yellow"}
_MARKS = {"up": "▲", "down": "▼"}
_UNKNOWN_BETTER = "nobody said which direction is better"


def overview(replayed: Sequence[Replayed]) -> Table:
    """One line a series with reports."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("series", no_wrap=True)
    table.add_column("nights", justify="right", no_wrap=True)
    table.add_column("history", no_wrap=True)
    table.add_column("reports", justify="right", no_wrap=True)
    table.add_column("last", no_wrap=True)
    for one in replayed:
        if one.detections:
            last = one.detections[-1]
            table.add_row(
                Text(_short(one_line(one.history.series))),
                str(one.history.nights),
                sparkline(one.history.values, _OVERVIEW_SPARK),
                str(len(one.detections)),
                Text(f"{percent(last.effect_pct)} at {_when(one.history, last.onset)}", style=_COLOURS[last.kind]),
            )
    return table


def details(one: Replayed, width: int = VIEW_WIDTH) -> Group:
    """One series: the sparkline with its onsets, the level of each stretch, what was reported and when."""
    history = one.history
    spark_width = min(width, VIEW_WIDTH)
    onsets = [
        (int(np.searchsorted(history.positions, found.onset)), _MARKS[found.direction]) for found in one.detections
    ]
    lines: list[Text | Table] = [
        Text(_title(history), style="bold"),
        Text(sparkline(history.values, spark_width), no_wrap=True),
    ]
    if one.detections:
        lines.append(Text(marks(history.nights, spark_width, onsets), no_wrap=True))
    lines.append(_stretch_table(one))
    if one.detections:
        last = one.detections[-1]
        lines.append(Text(f"last: {sentence(history, last)}", style=_COLOURS[last.kind]))
    return Group(*lines)


def sentence(history: History, detection: Detection) -> str:
    """A report in words: what, since when, and how long that took to see."""
    what = detection.kind if detection.kind != "change" else f"change ({_UNKNOWN_BETTER})"
    between = (
        f", between {detection.onset_low} and {detection.onset_high}"
        if detection.onset_low < detection.onset_high
        else ""
    )
    return (
        f"{what}, {percent(detection.effect_pct)} ({percent(detection.low_pct)} to {percent(detection.high_pct)}) "
        f"since night {_when(history, detection.onset)}{between}, reported in night {detection.reported}"
    )


def summary(replayed: Sequence[Replayed]) -> str:
    series = {one.history.series for one in replayed}
    nights = sum(one.history.nights for one in replayed)
    reports = sum(len(one.detections) for one in replayed)
    years = series_years([one.history for one in replayed])
    rate = f"{reports / years:.2f} reports a series-year of 365 nights" if years else "no nights"
    return f"{len(series)} series, {counted(nights, 'night')}, {counted(reports, 'report')}, {rate}"


def shortened(notes: Sequence[str], most: int) -> Iterable[str]:
    """The first of them, each on one line, and how many more there are."""
    yield from (one_line(note) for note in notes[:most])
    if len(notes) > most:
        yield f"... and {len(notes) - most} more such lines"


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def percent(value: float) -> str:
    if abs(value) >= 1e4:
        return f"{value:+.1e} %"
    return f"{value:+.0f} %" if abs(value) >= 100 else f"{value:+.1f} %" if abs(value) >= 1 else f"{value:+.2f} %"


def level(value: float, unit: str) -> str:
    return one_line(f"{value:.4g} {unit}".strip())


def _short(name: str) -> str:
    """Begin and end: names of one suite differ at either. Cells, as some characters take two."""
    if cell_len(name) <= _NAME_WIDTH:
        return name
    half = (_NAME_WIDTH - 1) // 2
    end = set_cell_size(name[::-1], half).rstrip()[::-1]
    return f"{set_cell_size(name, half).rstrip()}…{end}"


def _title(history: History) -> str:
    parts = [one_line(history.series), counted(history.nights, "night")]
    first, last = history.times[0][:10], history.times[-1][:10]
    if first and last:
        parts.append(one_line(f"{first} to {last}"))
    parts.append(one_line(history.unit) or "no unit")
    parts.append(_UNKNOWN_BETTER if history.better == "unknown" else f"{history.better} is better")
    return ", ".join(parts)


def _stretch_table(one: Replayed) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    for name in ("from night", "nights", "level", "change", "reported"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for part in stretches(one):
        found = part.detection
        table.add_row(
            Text(_when(one.history, part.first)),
            str(part.nights),
            Text(level(part.level, one.history.unit)),
            percent(found.effect_pct) if found else "",
            str(found.reported) if found else "",
            Text(found.kind, style=_COLOURS[found.kind]) if found else "",
        )
    return table


def _when(history: History, position: int) -> str:
    """The position, with the day where the file has days."""
    time = history.times[int(np.searchsorted(history.positions, position))]
    return one_line(f"{position} ({time[:10]})") if time else str(position)
