"""A bisection as JSON and as Markdown. Subjects, authors, file names and logs are foreign: in Markdown they stand in
code spans and blocks, where nothing is a mention, a link or HTML."""

from bot.bisection.account import (
    EXIT_CODES,
    SHORT,
    Found,
    change,
    cost,
    ends,
    is_doubtful,
    merge_sentence,
    percent,
    sentence,
    step_text,
)
from bot.bisection.verdict import Suspects
from torchbenchmark.foreign_text import inline_code, printable

MOST_ROWS = 20
LEAST_CHANCE = 0.03  # of a commit that was not measured, to have a row
BAR = 20  # characters of a probability of 1
HEADLINES = {
    "culprit": "The culprit is found",
    "set": "Narrowed to a set of commits",
    "several culprits": "Several culprits",
    "not reproduced": "Not reproduced",
    "environment": "The environment, not a commit",
    "budget spent": "The budget is spent",
    "ends not measurable": "The ends cannot be measured",
}


def content(found: Found) -> dict[str, object]:
    """What --json holds."""
    search, verdict, known = found.document.search, found.verdict, found.posterior
    return {
        "kind": "bisect",
        "schema": 1,
        "verdict": verdict.kind,
        "exit": EXIT_CODES[verdict.kind],
        "sentence": sentence(found),
        "of_merge": merge_sentence(found),
        "ends": ends(found.document) if known is not None else "",
        "reason": verdict.reason,
        "equal_ends": verdict.nothing,
        "changes": [_change(found, one) for one in verdict.suspects],
        "good": search.good,
        "bad": search.bad,
        "commits": [
            {
                "commit": commit,
                "subject": found.subjects.get(commit, ""),
                "probability": None if known is None or place == 0 else float(known.by_commit[place - 1]),
                "built": search.built.get(place),
                "log_ratios": list(search.measured.get(place, ())),
            }
            for place, commit in enumerate(search.commits)
        ],
        "builds": [one.model_dump() for one in found.document.made],
        "pairs": sum(len(visit.values) for visit in found.document.visits),
        "asked": found.document.asked.model_dump(),
        "branches": [content(one) for one in found.branches],
    }


def _change(found: Found, one: Suspects) -> dict[str, object]:
    return {
        "commits": list(one.inseparable),
        "credible": list(one.commits),
        "probability": one.probability,
        "certainty": one.certainty,
        "log_ratio": one.step,
        "change": change(found.document.asked, one.step),
    }


def markdown(found: Found, heading: str = "##") -> str:
    """What people are shown of it."""
    search, verdict = found.document.search, found.verdict
    parts = [
        f"{heading} {HEADLINES[verdict.kind]}",
        f"Range: `{search.good[:SHORT]}` (good) to `{search.bad[:SHORT]}` (bad), {len(search.commits) - 1} commits. "
        f"{cost(found.document)}.",
    ]
    for one in verdict.suspects:
        parts += _suspect(found, one)
    if verdict.kind in ("not reproduced", "environment", "budget spent") and found.posterior is not None:
        parts.append(f"{ends(found.document)[0].upper()}{ends(found.document)[1:]}.")
        parts.append(f"Probability that the ends are equal: {verdict.nothing:.2f}.")
    if verdict.reason and (verdict.kind not in ("not reproduced", "environment") or is_doubtful(found)):
        parts.append(f"It ended because: {inline_code(verdict.reason)}")
    parts += [f"- {inline_code(text)}" for text in verdict.environment]
    parts += _table(found)
    parts += _unbuildable(found)
    for branch in found.branches:
        parts.append(f"{heading}# In the branch up to `{branch.document.search.bad[:SHORT]}` that the merge brought in")
        parts.append(markdown(branch, f"{heading}##"))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _suspect(found: Found, one: Suspects) -> list[str]:
    step = step_text(found.document.asked, one.step)
    names = ", ".join(f"`{commit[:SHORT]}`" for commit in one.inseparable[:MOST_ROWS])
    what = "One commit" if len(one.inseparable) == 1 else f"One of {len(one.inseparable)} that no build tells apart"
    lines = [
        f"**{step}** at {names}. {what}, probability {one.probability:.3f} ({one.certainty}); credible set of "
        f"{len(one.commits)}."
    ]
    for commit in one.inseparable[:MOST_ROWS]:
        facts = found.facts.get(commit)
        if facts is None:
            continue
        lines.append(
            f"`{commit[:SHORT]}` {inline_code(facts.subject)}, {inline_code(facts.author)}, {inline_code(facts.date)}"
        )
        if facts.stat:
            lines.append("\n".join(["```text", *(_harmless(line) for line in facts.stat), "```"]))
    return lines


def _harmless(line: str) -> str:
    """A line of a code block, which it cannot end."""
    return printable(line).replace("`", "'").replace("\n", " ")


def _table(found: Found) -> list[str]:
    """Where the change is, of the commits that are likeliest and of all that were measured."""
    known, search = found.posterior, found.document.search
    if known is None:
        return []
    chances = [0.0, *map(float, known.by_commit)]
    wanted = set(search.measured) | {place for place, chance in enumerate(chances) if chance >= LEAST_CHANCE}
    rows = sorted(sorted(wanted, key=lambda place: -chances[place])[:MOST_ROWS])
    lines = ["| commit | subject | probability | | against good |", "|---|---|--:|---|---|"]
    for place in rows:
        commit = search.commits[place]
        values = search.measured.get(place, ())
        against = "not measured" if search.built.get(place) is None else "does not build"
        if values:
            mean = percent(change(found.document.asked, sum(values) / len(values)))
            against = f"{mean} in {len(values)}"
        bar = "█" * round(BAR * min(chances[place], 1.0))
        lines.append(
            f"| `{commit[:SHORT]}` | {inline_code(found.subjects.get(commit, '')[:80])} | {chances[place]:.3f} | "
            f"{bar} | {against} |"
        )
    return ["\n".join(lines)]


def _unbuildable(found: Found) -> list[str]:
    failed = [one for one in found.document.search.attempts if not one.ok]
    if not failed:
        return []
    lines = [f"- `{one.commit[:SHORT]}`: {inline_code(one.reason)}" for one in failed[:MOST_ROWS]]
    return [f"{len(failed)} that do not build or cannot be measured:", "\n".join(lines)]
