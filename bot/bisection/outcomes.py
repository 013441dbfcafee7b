"""What exact runs came to, such as a status or a count: how the search takes it, and how people are told.

To the search an outcome is the number under which it was first seen in this bisection; only whether two are alike
counts. People see `ok -> crash: <reason>` or `12 -> 14`.
"""

from collections.abc import Sequence

from bot.bisection.document import Asked, Document, End, Visit
from bot.bisection.verdict import Suspects
from torchbenchmark.channels import CHANNELS
from torchbenchmark.foreign_text import one_line

OK, FAILS = "ok", "fails"
MOST_DIFFERENT = 3  # ends of a flaky commit that are told


def numbered(visits: Sequence[Visit], visit: Visit) -> Visit:
    """A visit whose runs are there, with the numbers of their outcomes. `visits`: those before it."""
    seen = list(dict.fromkeys(end.outcome for one in (*visits, visit) for end in one.ends))
    return visit.model_copy(update={"values": tuple(float(seen.index(end.outcome)) for end in visit.ends)})


def ends_of(document: Document, commit: str) -> tuple[End, ...]:
    """Of all runs of a commit in the search."""
    return tuple(end for visit in document.visits if visit.commit == commit and visit.values for end in visit.ends)


def told(ends: Sequence[End]) -> str:
    """What runs came to, with the reason of the first; of runs that disagree each once, and how often."""
    outcomes = [end.outcome for end in ends]
    first = [next(end for end in ends if end.outcome == one) for one in dict.fromkeys(outcomes)]
    if len(first) == 1:
        return _with_reason(first[0])
    return "; ".join(f"{_with_reason(end)} in {outcomes.count(end.outcome)} of {len(ends)}" for end in first)


def in_brief(ends: Sequence[End]) -> str:
    """The same without reasons, for a row of a table."""
    outcomes = [end.outcome for end in ends]
    different = list(dict.fromkeys(outcomes))
    shown = ", ".join(one_line(one)[:80] for one in different[:MOST_DIFFERENT])
    return f"{shown} in {len(ends)}" if len(different) == 1 else f"flaky: {shown} in {len(ends)}"


def before_and_after(document: Document, one: Suspects) -> tuple[tuple[End, ...], tuple[End, ...]]:
    """The runs of the last settled commit before a change and of the first one with it."""
    search = document.search
    settled = [
        place
        for place, values in search.measured.items()
        if len(values) >= search.rules.agreeing and len(set(values)) == 1
    ]
    first, last = search.index[one.commits[0]], search.index[one.commits[-1]]
    before = max(place for place in settled if place < first)
    after = min(place for place in settled if place >= last)
    return ends_of(document, search.commits[before]), ends_of(document, search.commits[after])


def shift_text(asked: Asked, before: Sequence[End], after: Sequence[End]) -> str:
    """`ok -> crash: <reason> (worse)`."""
    direction = _direction(asked, before[0].outcome, after[0].outcome)
    return f"{told(before)} -> {told(after)}{f' ({direction})' if direction else ''}"


def _with_reason(end: End) -> str:
    return one_line(f"{end.outcome}: {end.why}" if end.why and end.outcome != OK else end.outcome)


def _direction(asked: Asked, before: str, after: str) -> str:
    """Worse or better; empty where that is not for us to say, as of several counts at once."""
    if before == after:
        return ""
    if asked.compared == "status":
        return "worse" if before == OK else "better" if after == OK else ""
    try:
        grows = float(after) > float(before)
    except ValueError:
        return ""
    more_is_better = asked.higher_is_better or (asked.channel in CHANNELS and CHANNELS[asked.channel].better != "lower")
    return "better" if grows == more_is_better else "worse"
