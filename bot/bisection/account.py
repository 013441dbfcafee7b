"""What a bisection came to, in sentences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from bot.bisection.document import Asked, Document
from bot.bisection.git_range import CommitFacts
from bot.bisection.posterior import Posterior
from bot.bisection.search import posterior
from bot.bisection.verdict import Kind, Suspects, Verdict
from torchbenchmark.quantity import counted, few
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, EXIT_REGRESSION

EXIT_SPENT = 3  # the budget is spent, and no commit or set is likely
EXIT_CODES: dict[Kind, int] = {
    "culprit": EXIT_REGRESSION,
    "set": EXIT_REGRESSION,
    "several culprits": EXIT_REGRESSION,
    "not reproduced": EXIT_CLEAN,
    "environment": EXIT_CLEAN,
    "ends not measurable": EXIT_BROKEN,
    "budget spent": EXIT_SPENT,
}
SHORT = 12  # digits of a commit
LEVEL = 0.95


@dataclass(frozen=True)
class Found:
    """A line of commits that was searched to its end; of a culprit that is a merge, what its branches came to."""

    document: Document
    verdict: Verdict
    subjects: Mapping[str, str]
    facts: Mapping[str, CommitFacts] = field(default_factory=dict)  # of the suspects
    branches: "tuple[Found, ...]" = ()

    @property
    def posterior(self) -> Posterior | None:
        return posterior(self.document.search)


def sentence(found: Found) -> str:
    """The verdict. Plain text, foreign subjects in quotes; whoever writes Markdown puts commits in themselves."""
    verdict, search = found.verdict, found.document.search
    match verdict.kind:
        case "culprit":
            return f"culprit: {_suspect(found, verdict.suspects[0])}"
        case "set":
            return f"a set of commits that no build tells apart: {_suspect(found, verdict.suspects[0])}"
        case "several culprits":
            return "several culprits: " + "; ".join(_suspect(found, one) for one in verdict.suspects)
        case "not reproduced":
            chance = f"probability of equal ends {verdict.nothing:.2f}"
            why = f"; the search ended because {verdict.reason}" if is_doubtful(found) else ""
            return f"not reproduced: {ends(found.document)} ({chance}){why}"
        case "environment":
            return (
                f"environment, not a commit: {ends(found.document)}; beside the build differ: "
                f"{'; '.join(verdict.environment)}"
            )
        case "ends not measurable":
            return f"ends not measurable: {verdict.reason}"
        case "budget spent":
            likeliest = "; ".join(_suspect(found, one) for one in verdict.suspects)
            return (
                f"budget spent ({verdict.reason}): the probability of equal ends is {verdict.nothing:.2f}"
                f"{'; likeliest: ' + likeliest if likeliest else ''} of {counted(len(search.commits) - 1, 'commit')}"
            )


def is_doubtful(found: Found) -> bool:
    """Whether equal ends are told of at less than what is called likely."""
    return found.verdict.nothing < found.document.search.rules.likely


def merge_sentence(found: Found) -> str:
    """What the branches of a culprit that is a merge came to; empty if it is none."""
    if not found.branches:
        return ""
    guilty = [one for one in found.branches if EXIT_CODES[one.verdict.kind] == EXIT_REGRESSION]
    if guilty:
        return "it is a merge; in its branch: " + "; ".join(sentence(one) for one in guilty)
    if all(one.verdict.kind == "not reproduced" for one in found.branches):
        return "it is a merge, and no branch that it brought in shows the change: it came of their being merged"
    return "it is a merge; of its branches: " + "; ".join(sentence(one) for one in found.branches)


def ends(document: Document) -> str:
    """How the ends differ, by all pairs of the bad end: `no difference beyond x %`."""
    values = np.array(document.search.measured.get(len(document.search.commits) - 1, ()))
    if len(values) < 2:
        return "the ends were not measured often enough to say anything"
    mean = float(values.mean())
    half = float(special.stdtrit(len(values) - 1, (1 + LEVEL) / 2) * values.std(ddof=1) / math.sqrt(len(values)))
    low, high = sorted(change(document.asked, one) for one in (mean - half, mean + half))
    if low <= 0 <= high:
        found = f"show no difference beyond {100 * max(-low, high):.2g} %"
    else:
        found = "show no clear difference"  # of the size that was looked for: the search has said so
    return (
        f"the ends {found} in {counted(len(values), 'pair')} ({percent(change(document.asked, mean))}, "
        f"{100 * LEVEL:.0f} % interval {percent(low)} to {percent(high)})"
    )


def change(asked: Asked, log_ratio: float) -> float:
    """The share by which what is measured changes, as it is printed: of a speed, less is a loss."""
    return math.expm1(-log_ratio if asked.higher_is_better else log_ratio)


def percent(share: float) -> str:
    return f"{100 * share:+.2g} %" if abs(share) < 0.1 else f"{100 * share:+.3g} %"


def step_text(asked: Asked, log_ratio: float) -> str:
    return f"{percent(change(asked, log_ratio))} ({'worse' if log_ratio > 0 else 'better'})"


def _suspect(found: Found, one: Suspects) -> str:
    names = [f"{commit[:SHORT]} “{found.subjects.get(commit, '')}”" for commit in one.inseparable]
    step = step_text(found.document.asked, one.step)
    return f"{few(names)} ({step}; probability {one.probability:.3f}, {one.certainty})"


def cost(document: Document) -> str:
    """What was built and measured."""
    failed = sum(not one.ok for one in document.made)
    pairs = sum(len(visit.values) for visit in document.visits)
    seconds = sum(one.seconds for one in document.made) + sum(visit.seconds for visit in document.visits)
    return (
        f"{counted(len(document.made), 'build')}, of which {failed} failed; {counted(pairs, 'pair')}; "
        f"{duration(seconds)} of building and measuring"
    )


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
