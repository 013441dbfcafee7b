"""A history with its reports as a picture, PNG or SVG."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.errors import BaselineError
from baselines.replay import Detection, Replayed, Stretch, stretches
from baselines.replay_view import percent, sentence
from torchbenchmark.foreign_text import one_line
from torchbenchmark.pictures import figure_of, title_of

_INCHES = (9.0, 3.9)
_TICKS = 7
_USUAL = (5, 95)  # per cent of the nights; the axis reaches _BEYOND times as far again on either side, no further
_BEYOND = 4.0
_MARGIN = 0.08  # of the axis
_VALUES_OUTSIDE = 8  # of the nights that are outside, so many have their value beside them
_LABEL_ROWS = 3  # neighbouring reports have their effects at different heights
_LONGEST_SLUG = 80
_LONGEST_TITLE = 120
_COLOURS = {"regression": "#c0392b", "improvement": "#1e8449", "change": "#b9770e"}
_POINT, _LEVEL = "#7f8c8d", "#1f4e79"


def draw_pictures(replayed: Sequence[Replayed], folder: Path) -> int:
    """One PNG a history, named after its series; makes the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BaselineError(f"{folder}: cannot be made: {error.strerror}; name another folder") from error
    for one, name in zip(replayed, file_names(one.history.series for one in replayed), strict=True):
        draw_history(one, folder / f"{name}.png")
    return len(replayed)


def file_names(series: Iterable[str]) -> list[str]:
    """A name without a suffix for each, harmless and of bounded length, also on file systems that ignore case."""
    used: set[str] = set()
    names = []
    for one in series:
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", one).strip("-.")[:_LONGEST_SLUG]
        if slug != one or not slug:
            slug = f"{slug}-{hashlib.sha256(one.encode(errors='surrogatepass')).hexdigest()[:8]}".lstrip("-")
        name, number = slug, 1
        while name.lower() in used:
            number += 1
            name = f"{slug}-{number}"
        used.add(name.lower())
        names.append(name)
    return names


def draw_history(
    replayed: Replayed, path: Path, *, title: str | None = None, window: tuple[int, int] | None = None
) -> None:
    """Points, the level of each stretch, and of each report its onset, night and effect; PNG or SVG by the suffix.

    `window` is the first and last position to be shown; levels are those of the whole stretches.
    """
    first, last = window or (int(replayed.history.positions[0]), int(replayed.history.positions[-1]))
    shown = _within(replayed, first, last)
    history = shown.history
    if not history.nights:
        raise BaselineError(f"{history.series}: no night from {first} to {last}; choose another window")
    first, last = int(history.positions[0]), int(history.positions[-1])
    with figure_of(path, _INCHES, one_line(history.series), BaselineError) as figure:
        axes = figure.subplots()
        parts = [part for part in stretches(replayed) if part.first <= last and part.last >= first]
        low, high = _limits(history.values, [part.level for part in parts])
        axes.set_ylim(low, high)
        axes.set_xlim(first - 0.5 - 0.01 * (last - first), last + 0.5 + 0.01 * (last - first))
        _draw_points(axes, history.positions, history.values, low, high)
        _draw_levels(axes, parts, first, last)
        _draw_reports(axes, shown.detections)
        _label(axes, shown, title or _default_title(shown))


def _within(replayed: Replayed, first: int, last: int) -> Replayed:
    history = replayed.history
    begin, end = np.searchsorted(history.positions, (first, last + 1))
    cut = replace(
        history,
        positions=history.positions[begin:end],
        values=history.values[begin:end],
        times=history.times[begin:end],
        commits=history.commits[begin:end],
    )
    inside = tuple(one for one in replayed.detections if one.reported >= first and one.onset <= last)
    return Replayed(cut, inside)


def _limits(values: NDArray[np.float64], levels: Sequence[float]) -> tuple[float, float]:
    """Of the axis: all levels, and all nights but those so far out that the others would be flat."""
    usual_low, usual_high = np.percentile(values, _USUAL)
    reach = _BEYOND * (usual_high - usual_low) or 0.01 * float(usual_high)
    inside = values[(values >= min(usual_low, *levels) - reach) & (values <= max(usual_high, *levels) + reach)]
    low, high = float(inside.min()), float(inside.max())
    margin = _MARGIN * (high - low) or 0.01 * high
    return low - margin, high + 2 * margin  # above there is the effect of each report


def _draw_points(axes: Any, positions: NDArray[np.int64], values: NDArray[np.float64], low: float, high: float) -> None:
    axes.plot(positions, values, ".", color=_POINT, markersize=4, label="night")
    label: str | None = "night outside, with its value"
    for outside, edge, marker in ((values > high, high, "^"), (values < low, low, "v")):
        if outside.any():
            where = np.full(outside.sum(), edge)
            axes.plot(positions[outside], where, marker, color=_POINT, clip_on=False, label=label)
            label = None
        for index in np.flatnonzero(outside)[:_VALUES_OUTSIDE]:
            axes.annotate(
                f"{values[index]:.4g}",
                (positions[index], edge),
                xytext=(5, -3),
                textcoords="offset points",
                fontsize=8,
                color=_POINT,
                annotation_clip=False,
            )


def _draw_levels(axes: Any, parts: Sequence[Stretch], first: int, last: int) -> None:
    label: str | None = "level (median)"
    for part in parts:
        ends = (max(part.first, first) - 0.5, min(part.last, last) + 0.5)
        axes.plot(ends, (part.level, part.level), color=_LEVEL, linewidth=2, label=label)
        label = None


def _draw_reports(axes: Any, detections: Sequence[Detection]) -> None:
    for index, one in enumerate(detections):
        colour = _COLOURS[one.kind]
        first_of_kind = all(other.kind != one.kind for other in detections[:index])
        name = "onset of an improvement" if one.kind == "improvement" else f"onset of a {one.kind}"
        axes.axvspan(
            one.onset_low - 0.5,
            one.onset_high + 0.5,
            color=colour,
            alpha=0.25,
            linewidth=0,
            label=name if first_of_kind else None,
        )
        label = "night of the report" if not index else None
        axes.axvline(one.reported, color=colour, linestyle="--", linewidth=1, label=label)
        axes.annotate(
            percent(one.effect_pct),
            (one.onset, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3, -10 - 11 * (index % _LABEL_ROWS)),
            textcoords="offset points",
            fontsize=8,
            color=colour,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5},
        )


def _label(axes: Any, shown: Replayed, title: str) -> None:
    history = shown.history
    better = "" if history.better == "unknown" else f" ({history.better} is better)"
    axes.set_ylabel(f"{one_line(history.unit) or 'value'}{better}", parse_math=False)
    axes.set_title(title_of(one_line(title), _LONGEST_TITLE), loc="left", fontsize=10, parse_math=False)
    chosen = np.unique(np.linspace(0, history.nights - 1, _TICKS).astype(int))
    names = [f"{history.positions[index]}\n{one_line(history.times[index][:10])}" for index in chosen]
    axes.set_xticks(history.positions[chosen], names, fontsize=8, parse_math=False)
    axes.set_xlabel("night" + (" and its date" if history.times[0] else ""))
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.figure.legend(loc="outside lower center", ncols=6, fontsize=7.5, columnspacing=1.2, frameon=False)


def _default_title(shown: Replayed) -> str:
    history = shown.history
    if not shown.detections:
        return f"{history.series}: no report"
    if len(shown.detections) == 1:
        return f"{history.series}: {sentence(history, shown.detections[0])}"
    return f"{history.series}: {len(shown.detections)} reports"
