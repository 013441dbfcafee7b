"""The posterior of a bisection as a picture: a bar a commit, and what was measured; PNG or SVG."""

from pathlib import Path

import numpy as np

from bot.bisection.account import Found, change, sentence, short
from bot.errors import BotError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.pictures import figure_of, title_of

_INCHES = (9.0, 5.0)
_LONGEST_TITLE = 130
_CULPRIT, _OTHER, _POINT, _BROKEN = "#c0392b", "#7f8c8d", "#1f618d", "#d5dbdb"
_MOST_TICKS = 12


def draw_posterior(found: Found, path: Path) -> None:
    """Above, the probability of a change at each commit; below, the pairs of each that was measured."""
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
        for place, values in search.measured.items():
            shares = [100 * change(found.document.asked, value) for value in values]
            lower.plot([place] * len(shares), shares, ".", color=_POINT, markersize=4, alpha=0.6)
            lower.plot([place], [np.median(shares)], "_", color=_CULPRIT, markersize=10)
        for place, ok in search.built.items():
            if not ok:
                for axes in (upper, lower):
                    axes.axvspan(place - 0.5, place + 0.5, color=_BROKEN, linewidth=0)
        lower.axhline(0.0, color="#7f8c8d", linewidth=0.6)
        lower.set_ylabel("pairs against good, %")
        ticks = np.unique(np.linspace(0, len(search.commits) - 1, min(_MOST_TICKS, len(search.commits))).astype(int))
        lower.set_xticks(ticks, [short(search.commits[place]) for place in ticks], rotation=45, ha="right", fontsize=7)
        for axes in (upper, lower):
            axes.grid(axis="y", linewidth=0.4, alpha=0.5)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        title = title_of(one_line(sentence(found)), _LONGEST_TITLE)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9, parse_math=False)
