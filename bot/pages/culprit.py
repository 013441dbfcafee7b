"""What the issue of an alert says of its bisection: one paragraph. Subjects and reasons are foreign, and stand in code
spans, where nothing is a mention, a link or HTML."""

from collections.abc import Sequence
from dataclasses import dataclass

from torchbenchmark.foreign_text import inline_code

SHORT = 12  # digits of a commit


@dataclass(frozen=True)
class CulpritChange:
    """One change, and the commits that no build tells apart."""

    commits: Sequence[tuple[str, str]]  # with their subjects
    more: int
    told: str
    probability: float
    certainty: str


@dataclass(frozen=True)
class CulpritFacts:
    """What a bisection came to."""

    date: str
    verdict: str
    good: str
    bad: str
    changes: Sequence[CulpritChange]
    nothing: float
    ends: str
    reason: str
    environment: Sequence[str]
    of_merge: str


def render_culprit(facts: CulpritFacts) -> str:
    """The paragraph, on one line of Markdown."""
    where = f"bisected on {facts.date} from `{facts.good[:SHORT]}` (good) to `{facts.bad[:SHORT]}` (bad)"
    changes = "; ".join(map(_change, facts.changes))
    ends = inline_code(facts.ends)
    merge = f" Of the merge: {inline_code(facts.of_merge)}." if facts.of_merge else ""
    match facts.verdict:
        case "culprit":
            return f"**The culprit is** {changes}; {where}.{merge}"
        case "set":
            return f"**The culprit is one of the commits that no build tells apart:** {changes}; {where}."
        case "several culprits":
            return f"**There are {len(facts.changes)} culprits:** {changes}; {where}."
        case "environment":
            differs = "; ".join(map(inline_code, facts.environment))
            return f"**Not a commit, but the environment:** {ends}. Beside the build differ: {differs}; {where}."
        case "not reproduced":
            return f"**Not reproduced by builds of the commits:** {ends}; {where}."
        case "budget spent":
            likeliest = f" Likeliest: {changes}." if changes else ""
            return f"**The budget of its bisection was spent** ({inline_code(facts.reason)}; {where}).{likeliest}"
    return f"**It could not be bisected** ({inline_code(facts.reason)}; {where})."


def _change(one: CulpritChange) -> str:
    names = ", ".join(f"`{commit[:SHORT]}` {inline_code(subject)}" for commit, subject in one.commits)
    more = f" and {one.more} more" if one.more else ""
    return f"{names}{more} ({inline_code(one.told)}, probability {one.probability:.3f}, {one.certainty})"
