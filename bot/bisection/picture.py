"""The posterior of a bisection as a picture: a bar a commit, and what was measured; PNG or SVG."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bot.bisection.account import Found, change, sentence, short
from bot.bisection.outcomes import ends_of
from bot.errors import BotError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.pictures import figure_of, title_of
from torchbenchmark.profiles.picture import draw_attribution
from torchbenchmark.profiles.traces import file_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (9.0, 5.0)
_LONGEST_TITLE = 130
_LONGEST_OUTCOME = 24
_CULPRIT, _OTHER, _POINT, _BROKEN = "#c0392b", "#7f8c8d", "#1f618d", "#d5dbdb"
_MOST_TICKS = 12


def draw_changes(found: Found, path: Path) -> dict[tuple[str, str], Path]:
    """Stacked bars of what changed inside each test, in files beside `path`: (commit, test) -> file."""
    drawn: dict[tuple[str, str], Path] = {}
    for one in found.attributed:
        for test in one.attribution.tests if one.attribution is not None else ():
            if test.accounts:
                file = path.with_name(f"{path.stem}-{file_name(test.test, short(one.head), path.suffix)}")
                draw_attribution(test, file)
                drawn[one.head, test.test] = file
    for branch in found.branches:
        drawn |= draw_changes(branch, path)
    return drawn


def draw_posterior(found: Found, path: Path) -> None:
    """Above, the probability of a change at each commit; below, the pairs or runs of each that was measured."""
    search, known = found.document.search, found.posterior
    if known is None:
        raise BotError(f"{path}: there is no posterior to draw, as the ends were not measured")
    places = np.arange(1, len(search.commits))
    guilty = {commit for one in found.verdict.suspects for commit in one.inseparable}
    with figure_of(path, _INCHES, search.bad, BotError) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True)
        colours = [_CULPRIT if search.commits[place] in guilty else _OTHER for place in places]
        upper.bar(places, known.by_commit, 0.85, color=colours)
        upper.set_ylim(0, 1.02)
        upper.set_ylabel("probability of a change")
        if found.document.asked.exact:
            _draw_outcomes(lower, found)
        else:
            _draw_pairs(lower, found)
        for place, ok in search.built.items():
            if not ok:
                for axes in (upper, lower):
                    axes.axvspan(place - 0.5, place + 0.5, color=_BROKEN, linewidth=0)
        ticks = np.unique(np.linspace(0, len(search.commits) - 1, min(_MOST_TICKS, len(search.commits))).astype(int))
        lower.set_xticks(ticks, [short(search.commits[place]) for place in ticks], rotation=45, ha="right", fontsize=7)
        for axes in (upper, lower):
            axes.grid(axis="y", linewidth=0.4, alpha=0.5)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        title = title_of(one_line(sentence(found)), _LONGEST_TITLE)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9, parse_math=False)


def _draw_pairs(axes: "Axes", found: Found) -> None:
    for place, values in found.document.search.measured.items():
        shares = [100 * change(found.document.asked, value) for value in values]
        axes.plot([place] * len(shares), shares, ".", color=_POINT, markersize=4, alpha=0.6)
        axes.plot([place], [np.median(shares)], "_", color=_CULPRIT, markersize=10)
    axes.axhline(0.0, color="#7f8c8d", linewidth=0.6)
    axes.set_ylabel("pairs against good, %")


def _draw_outcomes(axes: "Axes", found: Found) -> None:
    """A row for each outcome, in the order in which they were seen."""
    search = found.document.search
    names: dict[float, str] = {}
    for place, values in search.measured.items():
        ends = ends_of(found.document, search.commits[place])
        names |= {value: end.outcome for value, end in zip(values, ends, strict=True)}
        axes.plot([place] * len(values), values, ".", color=_POINT, markersize=6, alpha=0.6)
    rows = sorted(names)[:_MOST_TICKS]
    axes.set_yticks(rows, [title_of(one_line(names[row]), _LONGEST_OUTCOME) for row in rows], parse_math=False)
    axes.set_ylim(-0.5, max(names, default=0.0) + 0.5)
    axes.set_ylabel("what its runs came to")
