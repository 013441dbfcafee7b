"""The comment with the verdict of a `/benchmark` request: the verdict first, newly failing tests loud, what changed in
a table, all else folded.

Numbers are ours. Whatever the pull request or its machine wrote stands in code spans, where nothing is a mention, a
link, HTML or the end of a cell; and every section has its room, so that a comment always fits.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.benchmark_request import BenchmarkRequest
from bot.pages.comment_length import LONGEST_COMMENT, fitting
from bot.pages.request_status import SHORT
from bot.pages.templating import shell_word, templates
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.paired.comparison import Comparison, Count, Effect, TestOutcome
from torchbenchmark.paired.pairs_file import SIDES, PairsHeader
from torchbenchmark.paired.tables import MOST_SHOWN, ordered, told
from torchbenchmark.profiles.attribution import Attribution
from torchbenchmark.profiles.tables import in_brief, markdown_of
from torchbenchmark.quantity import counted, quantity

ROOM = {"failing": 9_000, "changed": 14_000, "open": 8_000, "same": 8_000, "inside": 9_000, "facts": 5_000}
MOST_NAMED = 3
_TOLD_FIRST = ("cpu", "gpu", "driver", "kernel", "torch", "python", "os", "cuda")  # facts of the environment told first


@dataclass(frozen=True)
class SideFacts:
    """How the build of one side went."""

    side: str
    commit: str
    state: str  # built, failed, not there, unavailable; empty: nothing is known of it
    reason: str = ""
    lines: Sequence[str] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class VerdictFacts:
    """All that a comment tells. `why_not`: why there is nothing measured, or not all; `is_refused`: results came, and
    are not believed."""

    request: BenchmarkRequest
    server: str
    config: str  # path of the configuration, as the workflow names it
    sides: Sequence[SideFacts] = ()
    comparison: Comparison | None = None
    header: PairsHeader | None = None
    attribution: Attribution | None = None
    why_not: str = ""
    is_refused: bool = False
    notes: Sequence[str] = ()
    head_now: str = ""  # of the pull request, if it has moved since
    run_url: str = ""
    most_pairs: int | None = None  # that a request may have; None: not known


@dataclass(frozen=True)
class Sorted:
    """The tests of a comparison by what is said of them."""

    failing: Sequence[TestOutcome]  # newly
    slower: Sequence[str]
    faster: Sequence[str]
    open: Sequence[str]
    same: Sequence[str]
    untold: Sequence[TestOutcome]  # failing on both sides, fixed, not measured, left out
    counts: Sequence[Count]  # that changed

    @property
    def unmeasured(self) -> int:
        """How many tests nothing is known of: left out, or without enough pairs of both sides."""
        return sum(one.verdict not in ("failing", "fixed") for one in self.untold)


def sort_tests(comparison: Comparison) -> Sorted:
    """A test is slower if any of its channels is, faster if one is and none slower; else its first judged channel
    says what it is, which also ends its measuring."""
    places: dict[str, list[str]] = {"slower": [], "faster": [], "no change": [], "inconclusive": []}
    untold = []
    for outcome in comparison.tests:
        effects = comparison.of_test(outcome.test)
        found = [one.verdict for one in effects]
        verdict = next((one for one in ("slower", "faster") if one in found), found[0] if found else "not measured")
        if outcome.verdict == "newly failing":
            continue
        if outcome.verdict == "ok" and verdict in places:
            places[verdict].append(outcome.test)
        else:
            untold.append(outcome)
    return Sorted(
        failing=[one for one in comparison.tests if one.verdict == "newly failing"],
        slower=places["slower"],
        faster=places["faster"],
        open=places["inconclusive"],
        same=places["no change"],
        untold=untold,
        counts=[one for one in comparison.counts if one.verdict == "changed"],
    )


def conclusion_of(facts: VerdictFacts) -> str:
    """What the check run says: failure for what is slower or newly failing, success where all tests are known not to
    be, else neutral: a test that a head keeps from being measured has not passed."""
    if facts.is_refused or facts.comparison is None:
        return "failure" if any(one.side == "head" and one.state == "failed" for one in facts.sides) else "neutral"
    found = sort_tests(facts.comparison)
    if found.failing or found.slower:
        return "failure"
    known = (found.same or found.faster) and not found.open and not found.unmeasured
    return "success" if known else "neutral"


def verdict_line(facts: VerdictFacts) -> str:
    """The verdict on one line of Markdown."""
    if facts.is_refused:
        return "Nothing measured: the results were refused."
    failed = next((one for one in facts.sides if one.state not in ("", "built")), None)
    if facts.comparison is None and failed is not None:
        how = {"failed": "does not build", "not there": "is not there"}.get(failed.state, "could not be built")
        return f"Nothing measured: {failed.side} `{failed.commit[:SHORT]}` {how}."
    if facts.comparison is None:
        return "Nothing measured."
    return _told_of(sort_tests(facts.comparison), facts.comparison)


def _told_of(found: Sorted, comparison: Comparison) -> str:
    of = counted(len(comparison.tests), "test")
    parts = []
    if found.failing:
        parts.append(f"Newly failing: {len(found.failing)} of {of}: {_few([one.test for one in found.failing])}")
    for name, tests, verdict in (("Slower", found.slower, "slower"), ("Faster", found.faster, "faster")):
        if tests:
            largest = [_telling(comparison, test, verdict) for test in tests]
            largest.sort(key=lambda one: -abs(one.effect or 0.0))
            said = [f"{inline_code(one.test)} {_percent(one.effect)} ({one.channel})" for one in largest[:MOST_NAMED]]
            more = f" and {len(largest) - MOST_NAMED} more" if len(largest) > MOST_NAMED else ""
            parts.append(f"{name}: {len(tests)} of {of}: {', '.join(said)}{more}")
    if found.counts:
        parts.append(f"{counted(len(found.counts), 'exact count')} changed")
    if found.open:
        parts.append(f"Inconclusive: {len(found.open)} of {of}: {_needs(comparison, found.open)}")
    if found.same and not parts:
        parts.append(f"No change beyond {_beyond(comparison, found.same)} in {counted(len(found.same), 'test')}")
    if found.unmeasured and parts:
        parts.append(f"Not measured: {found.unmeasured} of {of}")
    return f"{'. '.join(parts)}." if parts else "Nothing measured."


def _telling(comparison: Comparison, test: str, verdict: str) -> Effect:
    """The first judged channel if it says so, else the one that says most."""
    effects = comparison.of_test(test)
    if effects[0].verdict == verdict:
        return effects[0]
    return max((one for one in effects if one.verdict == verdict), key=lambda one: abs(one.effect or 0))


def _needs(comparison: Comparison, tests: Sequence[str]) -> str:
    firsts = [comparison.of_test(test)[0] for test in tests]
    needed = [max(1, one.needs) for one in firsts if one.needs is not None]
    if not needed:
        return "more pairs will hardly tell"
    return f"needs {counted(max(needed), 'more pair')}"


def _beyond(comparison: Comparison, tests: Sequence[str]) -> str:
    return f"{100 * max(comparison.of_test(test)[0].beyond for test in tests):.3g} %"


def render_verdict(facts: VerdictFacts) -> str:
    """The comment's Markdown, under LONGEST_COMMENT characters whatever it has to tell."""
    text = _rendered(_sections(facts))
    if len(text) > LONGEST_COMMENT:
        text = _rendered(
            _sections(facts) | {"same": [], "open": [], "beside": [], "inside": [], "facts": [], "log": []}
        )
    return fitting(text)


def _rendered(sections: Mapping[str, object]) -> str:
    text = templates().get_template("verdict.md.j2").render(**sections)
    return re.sub(r"\n{3,}", "\n\n", text)


def _sections(facts: VerdictFacts) -> dict[str, object]:
    request, comparison, header = facts.request, facts.comparison, facts.header
    found = sort_tests(comparison) if comparison is not None else Sorted((), (), (), (), (), (), ())
    effects = list(comparison.effects) if comparison is not None else []
    changed = [*found.slower, *found.faster]
    failed = [one for one in facts.sides if one.state not in ("", "built")]
    worst = {test: place for place, test in reversed(list(enumerate(one.test for one in ordered(effects))))}
    rows = sorted(
        (one for one in effects if one.test in changed and one.verdict in ("slower", "faster")),
        key=lambda one: worst[one.test],  # and the channels of a test as they are judged
    )
    beside = [one for one in effects if one.test in changed and one.verdict not in ("slower", "faster")]
    return {
        "verdict": verdict_line(facts),
        "request": request,
        "short": SHORT,
        "base_is": "the merge base" if request.base_is == "merge-base" else "as named",
        "machine": header.machine_class if header is not None else "",
        "day": f"{header.started:%Y-%m-%d}" if header is not None else "",
        "head_now": facts.head_now,
        "why_not": facts.why_not,
        "is_refused": facts.is_refused,
        "failed": failed,
        "log": _within([inline_code(line) for one in failed for line in one.lines], 4_000),
        "failing": _within(
            [f"| {inline_code(o.test)} | {inline_code(o.reason)} |" for o in found.failing], ROOM["failing"]
        ),
        "failing_all": len(found.failing),
        "changed": _within([_row(one) for one in rows] + [_count_row(one) for one in found.counts], ROOM["changed"]),
        "changed_all": len(rows) + len(found.counts),
        "changed_tests": len(dict.fromkeys([*changed, *(one.test for one in found.counts)])),
        "interval": f"{100 * comparison.level:.3g} % interval" if comparison is not None else "",
        "open": _within([_row(one) for one in effects if one.test in found.open], ROOM["open"]),
        "open_tests": len(found.open),
        "needs": _needs(comparison, found.open) if comparison is not None and found.open else "",
        "more_pairs": _more_pairs(request, comparison, found.open),
        "most_pairs": facts.most_pairs,
        "same": _within([_row(one) for one in effects if one.test in found.same], ROOM["same"]),
        "same_tests": len(found.same),
        "beside": _within([_row(one) for one in beside], ROOM["open"] // 2),
        "beside_all": len(beside),
        "counts_same": sum(one.verdict == "same" for one in comparison.counts) if comparison is not None else 0,
        "untold": _within(
            [f"{inline_code(one.test)}: {one.verdict}: {inline_code(one.reason or 'no pair')}" for one in found.untold],
            ROOM["open"] // 2,
        ),
        "untold_all": len(found.untold),
        "method": comparison.method if comparison is not None else "",
        "family": comparison.family if comparison is not None else 0,
        "sure": f"{100 * comparison.level:.3g} %" if comparison is not None else "",
        "facts": _facts_of(header, facts.sides) if header is not None else [],
        "brief": [in_brief(one) for one in facts.attribution.tests][:5] if facts.attribution is not None else [],
        "inside": _inside(facts.attribution) if facts.attribution is not None else [],
        "commands": _commands(facts),
        "notes": facts.notes,
        "run_url": facts.run_url,
    }


def _more_pairs(request: BenchmarkRequest, comparison: Comparison | None, tests: Sequence[str]) -> int:
    """How many pairs are to be asked for, so that what is open is decided; 0 if more will hardly tell."""
    needs = [comparison.of_test(test)[0].needs for test in tests] if comparison is not None else []
    return max((request.pairs + one for one in needs if one is not None), default=0)


def _row(effect: Effect) -> str:
    interval = "" if effect.low is None or effect.high is None else f"{_percent(effect.low)} to {_percent(effect.high)}"
    cells = (
        inline_code(effect.test),
        effect.channel,
        quantity(effect.base, effect.unit),
        quantity(effect.head, effect.unit),
        _percent(effect.effect),
        interval,
        str(effect.pairs),
        told(effect),
    )
    return f"| {' | '.join(cells)} |"


def _count_row(count: Count) -> str:
    base, head = (", ".join(f"{value:.12g}" for value in values[:4]) for values in (count.base, count.head))
    return f"| {inline_code(count.test)} | {count.channel} | {base} | {head} | | exact count | | changed |"


def _facts_of(header: PairsHeader, sides: Sequence[SideFacts]) -> list[str]:
    """What was built and where it was measured."""
    out = []
    seconds = {one.side: one.seconds for one in sides}
    for name in SIDES:
        build = getattr(header, name).build
        took = f", built in {seconds[name]:.0f} s" if name in seconds else ""
        out.append(
            f"{name}: {inline_code(f'{build.subject} {build.version}')}, Python {inline_code(build.python)}{took}"
        )
    base, head = (getattr(header, name).build for name in SIDES)
    for what, one, other in (("wheel", base.wheels, head.wheels), ("library", base.libraries, head.libraries)):
        differing = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        for name in differing:
            versions = (one.get(name, "absent"), other.get(name, "absent"))
            out.append(f"{what} that differs: {inline_code(f'{name}: {versions[0]} against {versions[1]}')}")
    out += [f"differs beside the builds: {inline_code(line)}" for line in header.differing]
    named = sorted(
        header.environment.facts.items(), key=lambda one: (not one[0].lower().startswith(_TOLD_FIRST), one[0])
    )
    out += [inline_code(f"{name}: {value}") for name, value in named]
    out.append(
        f"{counted(header.measuring.threads, 'thread')}, {header.measuring.budget_s:g} s of timed work per process"
    )
    return _within(out, ROOM["facts"])


def _inside(attribution: Attribution) -> list[str]:
    out: list[str] = []
    left = ROOM["inside"]
    for one in attribution.tests:
        text = "\n".join([f"{inline_code(one.test)}:", "", *markdown_of(one)])
        if len(text) <= left:
            out.append(text)
            left -= len(text)
    return out


def _commands(facts: VerdictFacts) -> list[str]:
    """What measures the same on one's own machine. Of it nothing is foreign: the request holds few characters."""
    request = facts.request
    server = facts.server.rstrip("/")
    repositories = {"base": (request.repository, request.base), "head": (request.head_repository, request.head)}
    built = [
        f"torchbench build {shell_word(f'git:{server}/{repository}.git@{commit}')} --config {shell_word(facts.config)}"
        for repository, commit in repositories.values()
    ]
    tests = _within([f"--test {shell_word(test)}" for test in request.tests], 6_000)
    ab = [
        "torchbench ab BASE_PYTHON HEAD_PYTHON",
        f"--suite {shell_word(request.suite)} --device {request.device} --pairs {request.pairs} --sequential",
        *tests,
    ]
    return [*built, " \\\n  ".join(ab)]


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return f"{100 * share:+.1f} %" if share < MOST_SHOWN else f"over {100 * MOST_SHOWN:+.0f} %"


def _few(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - MOST_NAMED} more" if len(tests) > MOST_NAMED else ""
    return ", ".join(inline_code(test) for test in tests[:MOST_NAMED]) + more


def _within(texts: Iterable[str], most: int) -> list[str]:
    """The first of the texts, as many as have room."""
    texts = list(texts)
    lengths = itertools.accumulate(len(text) + 1 for text in texts)
    return [text for text, length in zip(texts, lengths, strict=True) if length <= most]
