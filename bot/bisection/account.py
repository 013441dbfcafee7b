"""What a bisection came to, in sentences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from bot.bisection.attributed import Attributed, sentences
from bot.bisection.closing import closing_of, interval, outcomes, shows, takes_back
from bot.bisection.document import Asked, Compared, Document
from bot.bisection.git_range import CommitFacts
from bot.bisection.outcomes import before_and_after, ends_of, shift_text, told
from bot.bisection.posterior import Posterior
from bot.bisection.ranges import FollowUp
from bot.bisection.search import posterior
from bot.bisection.verdict import Kind, Suspects, Verdict
from torchbenchmark.builds.git import COMMIT
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
    attributed: tuple[Attributed, ...] = ()  # what each of the suspects changed, where that was asked for
    follow_ups: tuple[FollowUp, ...] = ()

    @property
    def posterior(self) -> Posterior | None:
        return posterior(self.document.search)


def sentence(found: Found) -> str:
    """The verdict. Plain text, foreign subjects in quotes; whoever writes Markdown puts commits in themselves."""
    verdict, search, noun = found.verdict, found.document.search, found.document.asked.noun
    match verdict.kind:
        case "culprit":
            return f"culprit: {_suspect(found, verdict.suspects[0])}"
        case "set":
            return f"a set of {noun}s that no build tells apart: {_suspect(found, verdict.suspects[0])}"
        case "several culprits":
            return "several culprits: " + "; ".join(_suspect(found, one) for one in verdict.suspects)
        case "not reproduced" if found.document.asked.exact:
            return f"not reproduced: {ends(found.document)}"
        case "not reproduced":
            chance = f"probability of equal ends {verdict.nothing:.2f}"
            why = f"; the search ended because {verdict.reason}" if is_doubtful(found) else ""
            return f"not reproduced: {ends(found.document)} ({chance}){why}"
        case "environment":
            return (
                f"environment, not a {noun}: {ends(found.document)}; beside the build differ: "
                f"{'; '.join(verdict.environment)}"
            )
        case "ends not measurable":
            return f"ends not measurable: {verdict.reason}"
        case "budget spent":
            likeliest = "; ".join(_suspect(found, one) for one in verdict.suspects)
            return (
                f"budget spent ({verdict.reason}): the probability of equal ends is {verdict.nothing:.2f}"
                f"{'; likeliest: ' + likeliest if likeliest else ''} of {counted(len(search.commits) - 1, noun)}"
            )


def flaky_sentence(found: Found) -> str:
    """Commits whose runs disagree; empty if there are none."""
    texts = [f"{short(commit)} ({told(ends_of(found.document, commit))})" for commit in found.verdict.flaky]
    return f"flaky, and left out: {few(texts)}" if texts else ""


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


def change_sentences(found: Found) -> list[str]:
    """What the suspects changed inside the model, those of the branches of a merge too."""
    mine = [said for one in found.attributed for said in sentences(one)]
    return [*mine, *(said for branch in found.branches for said in change_sentences(branch))]


def follow_up_sentence(one: FollowUp) -> str:
    """What lies behind a date, and how to go on. Plain text."""
    return (
        f"{few(one.names)}: {counted(one.commits, 'commit')} of the main branch, {short(one.good)} (good) to "
        f"{short(one.bad)} (bad); to bisect them: {one.command}"
    )


def short(name: str) -> str:
    """A name as it is told: of a commit its first digits."""
    return name[:SHORT] if COMMIT.fullmatch(name) else name


def ends(document: Document) -> str:
    """How the ends differ, by all pairs of the bad end: `no difference beyond x %`. Of what is compared exactly, what
    both came to."""
    if document.asked.exact:
        good, bad = (ends_of(document, commit) for commit in (document.search.good, document.search.bad))
        if not good or not bad:
            return "the ends were not measured often enough to say anything"
        return f"the good end gave {told(good)}, the bad end {told(bad)}, in {counted(len(bad), 'run')} of each"
    values = np.array(document.search.measured.get(len(document.search.commits) - 1, ()))
    if len(values) < 2:
        return "the ends were not measured often enough to say anything"
    mean = float(values.mean())
    half = float(special.stdtrit(len(values) - 1, (1 + LEVEL) / 2) * values.std(ddof=1) / math.sqrt(len(values)))
    low, high = sorted(change(document.asked, one) for one in (mean - half, mean + half))
    if low <= 0 <= high:
        found = f"show no difference beyond {100 * max(-low, high):.2g} %"
    elif abs(mean) < document.search.rules.smallest:
        found = "show no clear difference"  # of the size that was looked for
    else:
        found = "differ"
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
    return f"{percent(change(asked, log_ratio))} ({worse_or_better(log_ratio)})"


def worse_or_better(log_ratio: float) -> str:
    return "worse" if log_ratio > 0 else "better"


def change_text(document: Document, one: Suspects) -> str:
    """What changed: from what to what or, of times, by how much; with an interval where new pairs have shown it."""
    if document.asked.exact:
        return shift_text(document.asked, *before_and_after(document, one))
    again = closing_of(document, one).get("parent")
    if again is None or not shows(document, one, again):
        return step_text(document.asked, one.step)
    return f"{interval_text(document.asked, again)} ({worse_or_better(one.step)})"


def _suspect(found: Found, one: Suspects) -> str:
    names = [f"{short(commit)} “{found.subjects.get(commit, '')}”" for commit in one.inseparable]
    again = "".join(f"; {text}" for text in closing_texts(found.document, one))
    return (
        f"{few(names)} ({change_text(found.document, one)}; probability {one.probability:.3f}, {one.certainty}{again})"
    )


def closing_texts(document: Document, one: Suspects) -> list[str]:
    """What was measured after the verdict: the culprit against its parent, and the bad end without it."""
    texts = []
    for what, made in closing_of(document, one).items():
        measured = measured_again(document, made)
        if what == "parent":
            doubt = shows(document, one, made) is False
            text = f"the closing comparison does not show it: {measured}" if doubt else measured
            had = "" if document.asked.exact else f"; the search had {percent(change(document.asked, one.step))}"
            texts.append(f"measured again, parent against culprit: {text}{had}")
        else:
            still = {
                True: "",
                False: ", which does not take the change back",
                None: ", which leaves open whether it does",
            }
            told = still[takes_back(document, one, made)] if made.visits and not made.reason else ""
            texts.append(f"reverting it on the bad end: {measured}{told}")
    return texts


def measured_again(document: Document, one: Compared) -> str:
    if one.reason:
        return f"not measured, {one.reason}"
    if (ends := outcomes(one)) is not None:
        return shift_text(document.asked, *ends)
    pairs = counted(len(one.visits[0].values), "pair")
    if interval(one) is None:
        return f"not known, as only {pairs} gave a number"
    return f"{interval_text(document.asked, one)} in {pairs}"


def interval_text(asked: Asked, one: Compared) -> str:
    """`+8.1 % [+7.2, +9.0]`; empty without an interval."""
    found = interval(one)
    if found is None:
        return ""
    low, high = sorted(change(asked, side) for side in (found.low, found.high))
    return f"{percent(change(asked, found.estimate))} [{_bare(low)}, {_bare(high)}]"


def _bare(share: float) -> str:
    return percent(share).removesuffix(" %")


def cost(document: Document) -> str:
    """What was built and measured."""
    failed = sum(not one.ok for one in document.made)
    pairs = sum(len(visit.values) for visit in document.all_visits)
    seconds = sum(one.seconds for one in document.made) + sum(visit.seconds for visit in document.all_visits)
    return (
        f"{counted(len(document.made), 'build')}, of which {failed} failed; "
        f"{counted(pairs, document.asked.unit)}; "
        f"{duration(seconds)} of building and measuring"
    )


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
