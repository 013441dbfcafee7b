"""A detection's report on the terminal: what moved, what differs beside the numbers, the verdict last."""

from rich.table import Table
from rich.text import Text

from baselines.confirming.rates import told
from baselines.confirming.state import NightOutcome
from baselines.report import NightRef, Report, Row, State
from baselines.suspects import Screen
from torchbenchmark.quantity import quantity
from torchbenchmark.terminal import console, print_table, width_of

_STYLES = {
    State.SLOWER: "red",
    State.NEWLY_FAILING: "red",
    State.GONE: "yellow",
    State.NOT_COMPARABLE: "yellow",
    State.FASTER: "green",
    State.FIXED: "green",
}
_VERDICT_STYLES = {"clean": "green", "baseline made": "green", "regression": "red", "broken": "red"}
_VERDICTS = {
    "confirmed": "confirmed",
    "futile": "not there",
    "undecided": "undecided, goes on the next night",
    "continue": "not decided, the night's budget of pairs is spent",
}
_NUMBERS = ("baseline", "tonight", "change", "pin", "nights")
_OTHERS = "other channels"
_MOST_SUSPECTS = 10
_MOST_DIFFERENCES = 20  # of a new image there may be hundreds; all are in the JSON


def print_report(report: Report, *, verdict: bool = True) -> None:
    _line(f"tonight   {_night(report.tonight)}")
    _line(f"baseline  {_night(report.baseline) if report.baseline else 'none'}")
    if report.pin:
        _line(f"pinned    {_night(report.pin)}")
    _print_table(report)
    for count in report.counts:
        _line(f"count: {count.test} {count.channel} {count.baseline:.12g} -> {count.tonight:.12g}")
    for test, one in report.noisy.items():
        _line(f"called noise until {one.until:%Y-%m-%d}: {test}{f' within {one.width:.1%}' if one.width else ''}")
    if report.screen is not None:
        _print_screen(report.screen)
    if report.confirmation is not None:
        _print_confirmation(report.confirmation)
    for difference in report.differences[:_MOST_DIFFERENCES]:
        old, new = difference.old or "absent", difference.new or "absent"
        _line(f"differs: {difference.group} {difference.field}: {old} -> {new}")
    if len(report.differences) > _MOST_DIFFERENCES:
        _line(f"differs: and {len(report.differences) - _MOST_DIFFERENCES} more (--json has all)")
    if report.total:
        pinned = f", {report.pin_total.score:.1f} against the pin" if report.pin_total else ""
        _line(
            f"total {report.total.score:.1f}: {report.judged} against the nights before, which are 1000 "
            f"({report.total.change:+.2%} time), over {report.total.tests} tests{pinned}"
        )
        if report.total.left_out:
            _line(f"not in the total, in no category: {', '.join(report.total.left_out)}")
    _line(f"by the flat 7 % and 1 %, which no verdict hangs on: {report.flat.verdict}: {report.flat.reason}")
    if verdict:
        _line(f"{report.verdict}: {report.reason}", f"bold {_VERDICT_STYLES[report.verdict]}")


def _print_screen(screen: Screen) -> None:
    count = len(screen.suspects) + screen.left_out
    told = f"{count} suspects" if count != 1 else "1 suspect"
    _line(f"screen of {screen.series} series: {told if screen.suspects else 'nothing stands out'}")
    for suspect in screen.suspects[:_MOST_SUSPECTS]:
        alert = f"; alert open since {suspect.alert:%Y-%m-%d}" if suspect.alert else ""
        _line(f"  {suspect.kind}: {suspect.test} {suspect.why}{alert}", "bold" if suspect.reported else None)
    if count > _MOST_SUSPECTS:
        there = f"the first {len(screen.suspects)}, and the scores of all" if screen.left_out else "all"
        _line(f"  and {count - _MOST_SUSPECTS} more (--json has {there})")
    for reason in screen.environment:
        _line(f"perhaps the environment: {reason}", "yellow")


def _print_confirmation(outcome: NightOutcome) -> None:
    """What was measured again, what of it stands, and what of earlier nights was asked once more."""
    if outcome.not_measured:
        _line(f"not measured again: {outcome.not_measured}", "yellow")
    if outcome.not_asked_elsewhere:
        _line(f"not asked on a second runner: {outcome.not_asked_elsewhere}", "yellow")
    for note in outcome.notes:
        _line(f"environment: {note}", "yellow")
    for one in outcome.tried:
        pairs = f"{one.pairs} pair{'' if one.pairs == 1 else 's'}"
        against = f"against the build of {one.base:%Y-%m-%d %H:%M}"
        evidence = f"evidence {one.e_value:,.3g} of {one.threshold:,.3g} after {pairs}"
        effect = f"{one.effect:+.2%} " if one.pairs else ""
        _line(
            f"measured again: {one.test} {one.channel} {effect}{against}: {_VERDICTS[one.verdict]} ({evidence})",
            "bold" if one.verdict == "confirmed" else None,
        )
    for one in outcome.exact:
        _line(f"asked again: {one.sentence}", "bold" if one.verdict == "confirmed" else None)
    for name in outcome.without_base:
        _line(f"not measured again: {name}: no build from before its change can be had", "yellow")
    for name in outcome.gone:
        _line(f"measured again: {name}: confirmed earlier, and not there any more")
    for filed in outcome.filed:
        if filed.kind == "environment":
            _line(f"the environment changed: {filed.why}", "yellow")
        for interval in filed.intervals:
            shown = f"{interval.effect:+.2%} [{interval.low:+.2%}, {interval.high:+.2%}]"
            _line(f"there again: {interval.test} {interval.channel} {shown}: {filed.kind}", "bold")
    if outcome.not_closed:
        _line(f"no alert is closed or cleared: {outcome.not_closed}", "yellow")
    for closing in outcome.closings or ():
        for sentence in closing.sentences:
            _line(sentence)
    for channel, margin in outcome.margins.items():
        _line(f"margin of {channel}: {margin:.2%}, as builds compared with themselves differ")
    for line in told(outcome.rates) if outcome.rates is not None else ():
        _line(line)
    if outcome.waiting:
        _line(f"confirmed, to be asked again the next night: {', '.join(outcome.waiting)}", "bold")


def _print_table(report: Report) -> None:
    """On a terminal that is too narrow for all of it, without the channels that are not judged."""
    table = _table(report)
    if not console.is_terminal or width_of(table) <= console.width or not any(row.others for row in report.rows):
        print_table(table)
        return
    print_table(_table(report, without=_OTHERS))
    _line(f"the {_OTHERS} stand here if the terminal is {width_of(table)} columns wide, and in the JSON of the report")


def _table(report: Report, without: str = "") -> Table:
    order = list(State)
    rows = sorted(report.rows, key=lambda row: (order.index(row.state), -(row.change or 0), row.test))
    cells = [_cells(row) for row in rows]
    headings = [heading for heading in cells[0] if heading != without and any(row[heading] for row in cells)]
    table = Table(box=None)
    for heading in headings:
        table.add_column(heading, no_wrap=True, justify="right" if heading in _NUMBERS else "left")
    for row, shown in zip(rows, cells, strict=True):
        table.add_row(*(Text(shown[heading]) for heading in headings), style=_STYLES.get(row.state))
    return table


def _cells(row: Row) -> dict[str, str]:
    alert = f"alert open since {row.alert:%Y-%m-%d}" if row.alert else ""
    return {
        "test": row.test,
        "state": str(row.state),
        "channel": f"{row.channel} {row.statistic}" if row.channel else "",
        "baseline": quantity(row.baseline, row.unit),
        "tonight": quantity(row.tonight, row.unit),
        "change": _percent(row.change),
        "pin": _percent(row.pin_change),
        "nights": str(row.nights) if row.nights else "",
        _OTHERS: ", ".join(f"{name} {_percent(change)}" for name, change in row.others.items()),
        "reason": "; ".join(filter(None, (row.reason, alert))),
    }


def _percent(change: float | None) -> str:
    return "" if change is None else f"{change:+.1%}"


def _night(night: NightRef) -> str:
    commit = f" ({night.commit[:12]})" if night.commit else ""
    return f"{night.started:%Y-%m-%d %H:%M} {night.version}{commit}, coverage {night.coverage:.0%}, run {night.run}"


def _line(text: str, style: str | None = None) -> None:
    console.print(Text(text), style=style)
