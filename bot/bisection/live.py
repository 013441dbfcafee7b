"""What is shown while a bisection goes on: a line of each step, and on a terminal a bar of the posterior per commit."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.table import Table
from rich.text import Text

from bot.bisection.account import change, measured_again, percent, short
from bot.bisection.document import Compared, Document, Made, Visit
from bot.bisection.driving import View
from bot.bisection.outcomes import ends_of, told
from bot.bisection.search import posterior
from torchbenchmark.quantity import counted
from torchbenchmark.terminal import console

MOST_ROWS = 16
BAR = 30  # characters of a probability of 1


class TerminalView(View):
    """Plain lines, and below them on a terminal the commits that are likeliest by now."""

    def __init__(self, subjects: Mapping[str, str]) -> None:
        self.subjects = dict(subjects)
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def going_on(self, document: Document) -> None:
        pairs = sum(len(visit.values) for visit in document.all_visits)
        self._say(
            f"going on: {counted(len(document.made), 'build')} and {counted(pairs, document.asked.unit)} are there "
            "from before"
        )
        self._show(document)

    def building(self, document: Document, commit: str) -> None:
        self._say(f"building {self._name(commit)}")

    def built(self, document: Document, made: Made) -> None:
        if not made.ok:
            self._say(f"  does not build: {made.reason}{f' (log: {made.log})' if made.log else ''}", "yellow")
        self._show(document)

    def measuring(self, document: Document, visit: Visit) -> None:
        self._say(f"measuring {counted(visit.n, document.asked.unit)} of {self._name(visit.commit)}")

    def ran(self, document: Document) -> None:
        self._show(document)

    def measured(self, document: Document, visit: Visit) -> None:
        if document.asked.exact:
            self._say(f"  {told(ends_of(document, visit.commit))}")
            self._show(document)
            return
        mean = sum(visit.values) / len(visit.values)
        known = posterior(document.search)
        so_far = "" if known is None else f"; equal ends {known.nothing:.2f}, {self._likeliest(document)}"
        self._say(f"  {percent(change(document.asked, mean))} against the good end{so_far}")
        self._show(document)

    def left_out(self, document: Document, commit: str, reason: str) -> None:
        self._say(f"  left out: {reason}", "yellow")

    def closing(self, document: Document, one: Compared) -> None:
        told = {
            "parent": f"measuring again: {self._name(one.commit)} against its parent {self._name(one.base)}",
            "revert": f"measuring the bad end without {self._name(one.culprit)} against the bad end",
        }
        self._say(told[one.what])

    def closed(self, document: Document, one: Compared) -> None:
        self._say(f"  {measured_again(document, one)}")
        self._show(document)

    def _likeliest(self, document: Document) -> str:
        known = posterior(document.search)
        if known is None:
            return ""
        place = int(known.by_commit.argmax()) + 1
        return f"likeliest {short(document.search.commits[place])} {known.by_commit[place - 1]:.2f}"

    def _name(self, commit: str) -> str:
        return f"{short(commit)} {self.subjects.get(commit, '')[:60]}".rstrip()

    def _say(self, text: str, style: str | None = None) -> None:
        console.print(Text(text), style=style)

    def _show(self, document: Document) -> None:
        if self.live is not None:
            self.live.update(bars(document, self.subjects), refresh=True)


def bars(document: Document, subjects: Mapping[str, str]) -> Table:
    """A bar for each of the commits that are likeliest to have made the change."""
    search, known = document.search, posterior(document.search)
    table = Table(box=None, show_header=False, pad_edge=False)
    if known is None:
        table.add_row(Text("the ends are not measured yet"))
        return table
    chances = known.by_commit
    for place in sorted(sorted(range(len(chances)), key=lambda at: -chances[at])[:MOST_ROWS]):
        commit, share = search.commits[place + 1], min(float(chances[place]), 1.0)
        pairs = len(search.measured.get(place + 1, ()))
        tried = search.built.get(place + 1)
        told = "does not build" if tried is False else counted(pairs, document.asked.unit) if pairs else ""
        table.add_row(
            Text(short(commit)),
            Text("█" * round(BAR * share) or "·", style="red" if share > 0.5 else "cyan"),
            Text(f"{share:.3f}"),
            Text(told),
            Text(subjects.get(commit, "")[:50]),
        )
    table.add_row(Text("no change"), Text("█" * round(BAR * known.nothing) or "·"), Text(f"{known.nothing:.3f}"))
    return table
