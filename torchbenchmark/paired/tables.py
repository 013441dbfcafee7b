"""A comparison as people read it: a table on the terminal, and the same as Markdown. The verdict comes first, what
failed before what is slower, and what cannot be told says what it needs."""

import itertools
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from torchbenchmark.foreign_text import inline_code
from torchbenchmark.paired.comparison import Comparison, Count, Effect, TestOutcome
from torchbenchmark.paired.pairs_file import PairsHeader
from torchbenchmark.quantity import counted, quantity

STYLES = {"slower": "red", "newly failing": "bold red", "faster": "green", "fixed": "green", "inconclusive": "yellow"}
_ORDER = ("slower", "inconclusive", "not measured", "faster", "no change")
_HEADINGS = ("test", "channel", "base", "head", "change", "interval", "pairs", "verdict")
MOST_SHOWN = 10.0  # as a share: two pairs may give an interval up to any number
LARGEST_TABLE, LARGEST_LIST = 40_000, 15_000  # characters of Markdown; a comment on GitHub has 65,536 in all


def effect_table(comparison: Comparison) -> Table:
    """A row per test and judged channel."""
    table = Table(box=None)
    for heading in _HEADINGS:
        number = heading in ("base", "head", "change", "interval", "pairs")
        # Where it is drawn anew in place it is no wider than the terminal; then nothing is cut.
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for effect in ordered(comparison.effects):
        table.add_row(*(Text(cell) for cell in _cells(effect)), style=STYLES.get(effect.verdict))
    return table


def ordered(effects: Iterable[Effect]) -> list[Effect]:
    """What is slower first, and of each kind the largest first."""
    return sorted(effects, key=lambda one: (_ORDER.index(one.verdict), -abs(one.effect or 0.0), one.test, one.channel))


def _cells(effect: Effect) -> tuple[str, ...]:
    return (
        effect.test,
        effect.channel,
        quantity(effect.base, effect.unit),
        quantity(effect.head, effect.unit),
        percent(effect.effect),
        _interval(effect),
        str(effect.pairs),
        told(effect),
    )


def told(effect: Effect) -> str:
    """The verdict of a channel in words."""
    if effect.verdict == "no change":
        return f"no change beyond {_share(effect.beyond)}"
    if effect.verdict == "inconclusive":
        needs = (
            "more pairs will hardly tell"
            if effect.needs is None
            else f"needs {counted(max(1, effect.needs), 'more pair')}"
        )
        return f"inconclusive: {needs}"
    return f"{effect.verdict}: {effect.reason}" if effect.verdict == "not measured" else effect.verdict


def lines(comparison: Comparison) -> list[tuple[str, str | None]]:
    """What is said beside the table, with its style: failures, counts, how it was judged."""
    said: list[tuple[str, str | None]] = []
    left_out: dict[str, list[str]] = {}  # by their reason
    for outcome in comparison.tests:
        if outcome.verdict == "left out":
            left_out.setdefault(outcome.reason, []).append(outcome.test)
        elif outcome.verdict != "ok" or outcome.reason:
            said.append(
                (f"{_names(outcome)}: {outcome.verdict}: {outcome.reason or 'no pair'}", STYLES.get(outcome.verdict))
            )
    said += [(f"left out: {_few(tests)}: {reason}", "yellow") for reason, tests in left_out.items()]
    said += [(f"count: {_count(count)}", "yellow") for count in comparison.counts if count.verdict != "same"]
    same = sum(count.verdict == "same" for count in comparison.counts)
    if same:
        said.append((f"counts: {same} {'is' if same == 1 else 'are'} the same on both sides", None))
    for effect in comparison.effects:
        if effect.reason and effect.verdict != "not measured":
            said.append((f"{effect.test} {effect.channel}: {effect.reason}", None))
    adjusted = sorted({effect.channel for effect in comparison.effects if effect.adjusted_by})
    if adjusted:
        said.append(
            (
                f"adjusted by the host probe are change and interval, not base and head: {', '.join(adjusted)}",
                None,
            )
        )
    said.append(
        (f"{100 * comparison.level:.8g}% sure of all {comparison.family} intervals together: {comparison.method}", None)
    )
    said.append((f"variances known before: {comparison.prior}", None))
    return said


def differing(header: PairsHeader) -> list[tuple[str, str | None]]:
    """What differs between the sides beside their builds, with its style."""
    return [(f"the sides differ beside their builds: {line}", "yellow") for line in header.differing]


def verdict_line(comparison: Comparison) -> str:
    """The verdict in one line."""
    failing = [outcome.test for outcome in comparison.tests if outcome.verdict == "newly failing"]
    parts = [f"newly failing: {_few(failing)}"] if failing else []
    for verdict in ("slower", "faster"):
        found = [effect for effect in ordered(comparison.effects) if effect.verdict == verdict]
        if found:
            parts.append(f"{verdict}: {_few([f'{one.test} {one.channel} {percent(one.effect)}' for one in found])}")
    waiting = [effect for effect in comparison.effects if effect.verdict == "inconclusive"]
    if waiting:
        parts.append(f"inconclusive: {len(waiting)} of {len(comparison.effects)} intervals")
    changed = sum(count.verdict == "changed" for count in comparison.counts)
    if not parts and (comparison.effects or not changed):  # the verdict is of these, and not of a count
        parts.append(f"{comparison.verdict}: {counted(len(comparison.effects), 'interval')}")
    if changed:
        parts.append(f"{counted(changed, 'exact count')} changed")
    told = "; ".join(parts)
    return told if told.startswith(f"{comparison.verdict}: ") else f"{comparison.verdict}: {told}"


def markdown(comparison: Comparison, header: PairsHeader) -> str:
    """The comparison as Markdown. Every foreign text is a code span."""
    out = [
        f"**{_escaped(verdict_line(comparison))}**",
        "",
        f"Base {inline_code(header.base.asked)} ({inline_code(header.base.build.id)}), head "
        f"{inline_code(header.head.asked)} ({inline_code(header.head.build.id)}), side by side on "
        f"{inline_code(header.machine_class)}, {header.started:%Y-%m-%d}.",
        "",
    ]
    effects = ordered(comparison.effects)
    if effects:
        out += [f"| {' | '.join(_HEADINGS)} |", "|---|---|--:|--:|--:|--:|--:|---|"]
        rows = []
        for effect in effects:
            test, channel, *numbers, verdict = _cells(effect)
            rows.append(f"| {inline_code(test)} | {channel} | {' | '.join(numbers)} | {_escaped(verdict)} |")
        shown = _within(rows, LARGEST_TABLE)
        out += shown
        if len(shown) < len(rows):
            out += ["", f"…and {len(rows) - len(shown)} more, in the JSON."]
        out.append("")
    *said, level, prior = [f"- {_escaped(line)}" for line, _ in (*differing(header), *lines(comparison))]
    shown = _within(said, LARGEST_LIST)
    if len(shown) < len(said):
        shown.append(f"- …and {len(said) - len(shown)} more lines, in the JSON.")
    return "\n".join([*out, *shown, level, prior]) + "\n"


def _within(texts: Sequence[str], most: int) -> list[str]:
    """The first of the texts, as many as have room."""
    lengths = itertools.accumulate(len(text) + 1 for text in texts)
    return [text for text, length in zip(texts, lengths, strict=True) if length <= most]


def _names(outcome: TestOutcome) -> str:
    return outcome.test if outcome.head_test == outcome.test else f"{outcome.test} against {outcome.head_test}"


def _count(count: Count) -> str:
    base, head = (", ".join(f"{value:.12g}" for value in values) for values in (count.base, count.head))
    what = "" if count.verdict == "changed" else " (not the same every time)"
    return f"{count.test} {count.channel} {base} -> {head}{what}"


def _interval(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return ""
    return f"{percent(effect.low)} … {percent(effect.high)}"


def percent(share: float | None) -> str:
    """With two decimals: half a percent is to be seen."""
    if share is None:
        return ""
    return f"{share:+.2%}" if share < MOST_SHOWN else f"over {MOST_SHOWN:+.0%}"


def _share(share: float) -> str:
    return f"{100 * share:.3g} %"


def _few(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _escaped(text: str) -> str:
    """Plain text in Markdown: a test id or a reason makes no mark-up, no mention and no cell."""
    return inline_code(text)
