"""What `ab` shows while it measures: a line a pair, and the verdicts as they stand after every round."""

from collections.abc import Callable

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from torchbenchmark.channels import CHANNELS
from torchbenchmark.paired.comparison import Comparison
from torchbenchmark.paired.finished import Finished
from torchbenchmark.paired.pairs_file import Pair, Pairs, PairsHeader
from torchbenchmark.paired.tables import differing, effect_table, lines, percent, verdict_line
from torchbenchmark.quantity import counted, quantity
from torchbenchmark.records import Process, Status
from torchbenchmark.terminal import console, print_table


class TerminalPairs:
    """A PairsReporter. On a terminal the table is kept at the bottom and drawn anew; elsewhere one line a round."""

    def __init__(self, judge: Callable[[Pairs], Comparison]) -> None:
        self.judge = judge
        self.live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> "TerminalPairs":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def planned(self, pairs: Pairs) -> None:
        header = pairs.header
        for name, side in (("base", header.base), ("head", header.head)):
            self._say(f"{name}  {side.asked}: {side.build.subject} {side.build.version}, build {side.build.id}")
        for test in header.tests:
            if test.left_out:
                self._say(f"left out: {test.base}: {test.left_out}", "yellow")
        measured = sum(not test.left_out for test in header.tests)
        each = header.rounds * header.processes
        told = (
            f"; {len(pairs.pairs)} of {measured * each} pairs are there, it goes on as it began" if pairs.pairs else ""
        )
        self._say(
            f"class {header.machine_class}: {counted(measured, 'test')}, {counted(each, 'pair')} each, "
            f"seed {header.seed}{told}"
        )

    def round_started(self, number: int, rounds: int) -> None:
        self._say(f"round {number} of {rounds}: starting the interpreters of both sides")

    def measured(self, pair: Pair) -> None:
        sides = {"base": pair.base, "head": pair.head}
        self._say(f"  {pair.test}: " + ", ".join(f"{name} {_told(sides[name])}" for name in pair.order))

    def round_ended(self, pairs: Pairs, number: int) -> None:
        comparison = self.judge(pairs)
        if self.live is None:
            self._say(f"after round {number}: {verdict_line(comparison)}")
            return
        self.live.update(Group(effect_table(comparison), Text(verdict_line(comparison), style="bold")), refresh=True)

    def note(self, text: str) -> None:
        self._say(f"  note: {text}", "yellow")

    def _say(self, text: str, style: str | None = None) -> None:
        console.print(Text(text), style=style)


def _told(process: Process | None) -> str:
    if process is None:
        return "not measured"
    if process.status is not Status.OK:
        return f"{process.status} ({process.reason})"
    channel = process.channels.get("gpu_time") or process.channels.get("latency")
    return f"{channel.median * 1e3:.3f} ms" if channel else "ok"


def print_comparison(comparison: Comparison, header: PairsHeader) -> None:
    """The table, and what is said beside it; the verdict comes last, from `verdict_line`."""
    if comparison.effects:
        print_table(effect_table(comparison))
    for text, style in (*differing(header), *lines(comparison)):
        console.print(Text(text), style=style)


def print_finished(found: Finished) -> None:
    """Two runs beside each other, and what they cannot tell, last, where it is read."""
    table = Table(box=None)
    for heading in ("test", "channel", "A", "B", "change", "spread of A", "of B", ""):
        table.add_column(heading, justify="left" if heading in ("test", "channel", "") else "right")
    for row in sorted(found.rows, key=lambda row: (-abs(row.change or 0.0), row.test)):
        kind = CHANNELS[row.channel]
        if kind.exact and row.change == 0:
            continue
        told = "count changed" if kind.exact else "apart" if row.beyond_spread else "within their spread"
        cells = (
            row.test,
            row.channel,
            quantity(row.a.value, kind.unit),
            quantity(row.b.value, kind.unit),
            percent(row.change),
            f"{row.a.spread:.1%}",
            f"{row.b.spread:.1%}",
            told,
        )
        table.add_row(*map(Text, cells))
    if table.row_count:
        print_table(table)
    same = sum(CHANNELS[row.channel].exact and row.change == 0 for row in found.rows)
    console.print(f"counts: {same} {'is' if same == 1 else 'are'} the same")
    for test, (state, reason) in found.states.items():
        style = "bold red" if state == "newly failing" else None
        console.print(Text(f"{test}: {state}{f': {reason}' if reason else ''}"), style=style)
    for line in found.cannot_know:
        console.print(Text(f"cannot know: {line}"), style="yellow")
