"""The difference of a test's profiles as stacked bars, base beside head; PNG or SVG."""

from pathlib import Path
from typing import Any

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.pictures import figure_of, title_of
from torchbenchmark.profiles.attribution import Account, TestAttribution
from torchbenchmark.profiles.tables import ACCOUNTS, headline, rows_for_bars, short_kernel, signed

_INCHES = (9.0, 4.6)
_MOST_PARTS = 8
_LONGEST_TITLE = 120
_FOUND = ("#c0392b", "#d35400", "#b9770e", "#7d3c98", "#1f618d", "#117864", "#6e2c00", "#1b2631")
_SAME = ("#aeb6bf", "#ccd1d1", "#d5dbdb", "#bfc9ca", "#c5cbd3", "#d6dce0", "#b4bcc2", "#dfe3e6")
_REST = "#eceff1"


def draw_attribution(one: TestAttribution, path: Path) -> None:
    """Two bars an account, in milliseconds of an iteration; what differs has a colour, all else is grey."""
    if not one.accounts:
        raise BenchmarkError(f"{one.test}: no profile that could be drawn")
    with figure_of(path, _INCHES, one_line(one.test)) as figure:
        places = figure.subplots(1, len(one.accounts), squeeze=False)[0]
        for axes, account in zip(places, one.accounts, strict=True):
            _draw_account(axes, account)
        title = title_of(one_line(headline(one)), _LONGEST_TITLE)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9, parse_math=False)


def _draw_account(axes: Any, account: Account) -> None:
    rows, rest = rows_for_bars(account, _MOST_PARTS)
    bottoms = [0.0, 0.0]
    colours = {True: iter(_FOUND), False: iter(_SAME)}
    parts = [
        (
            f"{one_line(short_kernel(row.name))} {signed(row.change) if row.found else ''}".strip(),
            row.found,
            row.base,
            row.head,
        )
        for row in rows
    ]
    for label, found, *values in parts:
        _stack(axes, bottoms, values, next(colours[found]), label)
    _stack(axes, bottoms, rest, _REST, "all others")
    axes.set_xticks((0, 1), ("base", "head"))
    axes.set_ylabel(f"{ACCOUNTS[account.name]} of one iteration, ms")
    axes.axhline(0.0, color="#7f8c8d", linewidth=0.6)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7.5, frameon=False, reverse=True)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _stack(axes: Any, bottoms: list[float], values: Any, colour: str, label: str) -> None:
    heights = [1e3 * value for value in values]
    places = [bottom if height >= 0 else 0.0 for bottom, height in zip(bottoms, heights, strict=True)]
    axes.bar((0, 1), heights, 0.6, bottom=places, color=colour, edgecolor="white", linewidth=0.4, label=label)
    for index, height in enumerate(heights):
        bottoms[index] += max(0.0, height)
