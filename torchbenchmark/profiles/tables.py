"""A difference of profiles as people read it: sentences, a table on the terminal, and the same as Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from torchbenchmark.foreign_text import inline_code
from torchbenchmark.paired.pairs_file import PairsHeader
from torchbenchmark.profiles.attribution import Account, AccountName, Attribution, Row, TestAttribution
from torchbenchmark.quantity import counted, quantity

KINDS = {
    "kernel": "GPU",
    "copy": "GPU, copy",
    "operator": "CPU",
    "dispatch": "CPU-side: dispatch",
    "compiled": "CPU-side: compiled graph",
    "python": "CPU-side: Python",
    "waiting": "CPU waits for the GPU",
    "others": "",
    "remainder": "",
}
ACCOUNTS: dict[AccountName, str] = {"gpu": "GPU time", "host": "latency"}
NOISE = "within noise"
MOST_FOUND, LEAST_ROWS, MOST_KERNELS = 15, 6, 4
LONGEST_KERNEL = 70
MOST_NAMED = 3  # causes, in a line
MANY_TIMES = 3.0  # as long: told so, and no more in percent
_HEADINGS = ("where", "side", "base", "head", "change", "interval", "share", "count", "")
_NUMBERS = _HEADINGS[2:8]
_REMAINDER_TOLD = {
    "gpu": "what the profile with operators and the plain one differ by",
    "host": "what timed and profiled iterations differ by: the profiler, noise",
}


@dataclass(frozen=True)
class Line:
    """A line of a table: its name, whether it belongs to the one above, and its other cells."""

    name: str
    below: bool
    cells: tuple[str, ...]
    found: bool


def headline(one: TestAttribution) -> str:
    """What changed in a test, in one line."""
    if not one.accounts:
        return f"{one.test}: not attributed: {one.reason or 'no profile'}"
    moved = ", ".join(f"{ACCOUNTS[account.name]} {_whole(account)}" for account in one.accounts)
    found = one.found()
    if not found:
        return f"{one.test}: no operator or kernel differs beyond noise; {moved}"
    first = "; ".join(sentence(row) for _, row in found[:MOST_NAMED])
    more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"{one.test}: {first}{more} ({moved})"


def sentence(row: Row) -> str:
    """A cause: what it is, what happened to it and how much that makes."""
    share = f", {_percent(row.share)} of the change" if row.share is not None else ""
    name = f"{row.name} ({KINDS[row.kind]})" if row.kind != "python" else f"{KINDS[row.kind]}, outside of operators"
    return f"{name} {told(row)}, {signed(row.change)}{share}"


def in_brief(one: TestAttribution) -> str:
    """What changed in a test, in fewer words than the headline has."""
    if not one.accounts:
        return f"{one.test}: not attributed: {one.reason or 'no profile'}"
    causes = [brief(row) for _, row in one.found()]
    more = f"; and {len(causes) - MOST_NAMED} more" if len(causes) > MOST_NAMED else ""
    return f"{one.test}: {'; '.join(causes[:MOST_NAMED]) or 'no operator or kernel differs beyond noise'}{more}"


def first_account(one: TestAttribution) -> TestAttribution:
    """The test with the account alone in which more is told, for where there is less room."""
    return one.model_copy(update={"accounts": one.accounts[:1]})


def brief(row: Row) -> str:
    """A cause in as few words as tell its size: aten::gelu +41 % of its time, 93 % of the change."""
    name = short_kernel(row.name) if row.kind != "python" else f"{KINDS[row.kind]},"
    share = f", {_percent(row.share)} of the change" if row.share is not None else ""
    if row.base <= 0 or row.head <= 0:
        return f"{name} {told(row)}, {signed(row.change)}{share}"
    counted_so = next((verdict for verdict in row.verdicts if verdict.endswith("often")), "")
    often = f" {counted_so} ({_count(row)})," if counted_so else ""
    ratio = row.head / row.base
    size = f"{ratio:.3g} times its time" if ratio >= MANY_TIMES else f"{100 * (ratio - 1):+.0f} % of its time"
    return f"{name}{often} {size}{share}"


def told(row: Row) -> str:
    """What happened to a row, in words."""
    return ", ".join(row.verdicts) or NOISE


def lines_of(account: Account) -> list[Line]:
    """Causes, then the largest of what is within noise, then all others as one line, then the remainder: what is shown
    adds up to the change of the whole as well."""
    *named, last = account.rows if account.rows and account.rows[-1].kind == "remainder" else [*account.rows, None]
    found = [row for row in named if row.found][:MOST_FOUND]
    rest = sorted((row for row in named if row not in found), key=lambda row: -abs(row.change))
    shown = rest[: max(0, LEAST_ROWS - len(found))]
    pooled = rest[len(shown) :]
    lines = [Line("all", False, _cells(_as_row(account), "" if account.decided else NOISE), account.decided)]
    for row in (*found, *shown):
        lines.append(Line(row.name, False, _cells(row, _verdict(row)), row.found))
        changed = [kernel for kernel in row.kernels if kernel.verdicts] or row.kernels
        for kernel in changed[:MOST_KERNELS] if row.found else ():
            lines.append(Line(short_kernel(kernel.name), True, _cells(kernel, told(kernel)), bool(kernel.verdicts)))
    if pooled:
        change = sum(row.change for row in pooled)
        base, head = sum(row.base for row in pooled), sum(row.head for row in pooled)
        cells = ("", seconds_of(base), seconds_of(head), signed(change), "", _share_of(change, account), "", "")
        lines.append(Line(f"{counted(len(pooled), 'more row')}", False, cells, False))
    if last is not None:
        lines.append(Line("remainder", False, _cells(last, _REMAINDER_TOLD[account.name]), False))
    return lines


def _as_row(account: Account) -> Row:
    return Row(
        name="all",
        kind="others",
        base=account.base,
        head=account.head,
        change=account.change,
        low=account.low,
        high=account.high,
        share=1.0 if account.decided else None,
        verdicts=(("slower" if account.change > 0 else "faster"),) if account.decided else (),
    )


def _verdict(row: Row) -> str:
    touched = f"; touched: {', '.join(row.touched[:2])}" if row.touched and row.found else ""
    return f"{told(row)}{touched}"


def _cells(row: Row, verdict: str) -> tuple[str, ...]:
    interval = "" if row.low is None or row.high is None else f"{signed(row.low)} … {signed(row.high)}"
    return (
        KINDS[row.kind],
        seconds_of(row.base),
        seconds_of(row.head),
        signed(row.change),
        interval,
        _percent(row.share),
        _count(row),
        verdict or told(row),
    )


def _count(row: Row) -> str:
    if row.base_count is None or row.head_count is None:
        return ""
    base, head = f"{row.base_count:.4g}", f"{row.head_count:.4g}"
    return base if base == head else f"{base} → {head}"


def _share_of(change: float, account: Account) -> str:
    return _percent(change / account.change) if account.decided and account.change else ""


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _whole(account: Account) -> str:
    ratio = account.change / account.base if account.base > 0 else 0.0
    return f"{ratio:+.1%}{'' if account.decided else ', within noise'}"


def seconds_of(value: float) -> str:
    return f"{1e9 * value:.3g} ns" if 0 < abs(value) < 1e-6 else quantity(value, "s")


def signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{seconds_of(abs(seconds))}"


def short_kernel(name: str) -> str:
    """The name of a kernel as it is shown: without its return type and the inner of long template arguments."""
    name = re.sub(r"^void ", "", name).replace("(anonymous namespace)::", "").replace("at::native::", "")
    name = name.partition("(")[0] if name.endswith(")") else name
    while len(name) > LONGEST_KERNEL and (inner := re.sub(r"<[^<>]*>", "‹›", name)) != name:
        name = inner
    name = name.replace("‹›", "<…>")
    return name if len(name) <= LONGEST_KERNEL else f"{name[: LONGEST_KERNEL - 1]}…"


def table_of(account: Account) -> Table:
    table = Table(box=None, title=f"{ACCOUNTS[account.name]} of one iteration", title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right" if heading in _NUMBERS else "left")
    for line in lines_of(account):
        cells = (f"  {line.name}" if line.below else line.name, *line.cells)
        table.add_row(*map(Text, cells), style="bold" if line.found and not line.below else None)
    return table


def notes_of(one: TestAttribution) -> list[str]:
    """What is said beside the tables of a test."""
    said = [f"count: {count.channel} {count.base:.12g} -> {count.head:.12g}" for count in one.counts]
    return [*said, one.reason] if one.reason and one.accounts else said


def how_judged(attribution: Attribution, pairs: int) -> str:
    return (
        f"{100 * attribution.level:.8g}% sure of all {attribution.family} intervals together: Student t of "
        f"{counted(pairs, 'pair')}, moderated over the names; counts are exact"
    )


def markdown(attribution: Attribution, header: PairsHeader) -> str:
    """The difference as Markdown. Every foreign text is a code span."""
    out = [
        f"Base {inline_code(header.base.asked)} ({inline_code(header.base.build.id)}), head "
        f"{inline_code(header.head.asked)} ({inline_code(header.head.build.id)}), profiled by turns on "
        f"{inline_code(header.machine_class)}, {header.started:%Y-%m-%d}.",
        "",
    ]
    for one in attribution.tests:
        out += [f"**{inline_code(headline(one))}**", "", *markdown_of(one)]
    return "\n".join([*out, f"- {how_judged(attribution, _pairs(attribution))}"]) + "\n"


def markdown_of(one: TestAttribution) -> list[str]:
    """The tables of one test, as an issue or a comment holds them."""
    out: list[str] = []
    for account in one.accounts:
        headings = (f"{ACCOUNTS[account.name]} of one iteration", *_HEADINGS[1:])
        out += [f"| {' | '.join(headings)} |", "|---|---|--:|--:|--:|--:|--:|--:|---|"]
        for line in lines_of(account):
            name = f"↳ {inline_code(line.name)}" if line.below else inline_code(line.name)
            *cells, verdict = line.cells
            verdict = inline_code(verdict) if "touched: " in verdict else verdict
            out.append(f"| {name} | {' | '.join(cells)} | {verdict} |")
        out.append("")
    notes = [f"- {inline_code(note)}" for note in notes_of(one)]
    return [*out, *notes, ""] if notes else out


def _pairs(attribution: Attribution) -> int:
    return max((one.pairs for one in attribution.tests), default=0)


def verdict_line(attribution: Attribution) -> str:
    """All tests in one line each, for the end of the terminal."""
    return "\n".join(headline(one) for one in attribution.tests)


def rows_for_bars(account: Account, most: int) -> tuple[Sequence[Row], tuple[float, float]]:
    """The rows that get a colour, and (base, head) of all others together."""
    named = [row for row in account.rows if row.kind not in ("others", "remainder")]
    shown = sorted(named, key=lambda row: (not row.found, -max(row.base, row.head)))[:most]
    base, head = sum(row.base for row in shown), sum(row.head for row in shown)
    return shown, (account.base - base, account.head - head)
