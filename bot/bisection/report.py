"""A bisection as JSON and as Markdown. Subjects, authors, file names and logs are foreign: in Markdown they stand in
code spans and blocks, where nothing is a mention, a link or HTML."""

import re
from dataclasses import asdict

from bot.bisection.account import (
    EXIT_CODES,
    Found,
    change,
    change_text,
    closing_texts,
    cost,
    ends,
    is_doubtful,
    merge_sentence,
    percent,
    sentence,
    short,
)
from bot.bisection.attributed import Pictures
from bot.bisection.attributed import markdown as markdown_of_change
from bot.bisection.closing import closing_of, interval, outcomes, shows, takes_back
from bot.bisection.document import Compared, Noun
from bot.bisection.outcomes import before_and_after, ends_of, in_brief, told
from bot.bisection.paths import told_of_prior
from bot.bisection.ranges import FollowUp
from bot.bisection.verdict import Suspects, Verdict
from torchbenchmark.foreign_text import inline_code, printable
from torchbenchmark.quantity import counted, few

MOST_ROWS = 20
LEAST_CHANCE = 0.03  # of a commit that was not measured, to have a row
BAR = 20  # characters of a probability of 1
LIKELY = "The likely culprit"
HEADLINES = {
    "culprit": "The culprit is found",
    "set": "Narrowed to a set of {noun}s",
    "several culprits": "Several culprits",
    "not reproduced": "Not reproduced",
    "environment": "The environment, not a {noun}",
    "budget spent": "The budget is spent",
    "ends not measurable": "The ends cannot be measured",
}


def content(found: Found) -> dict[str, object]:
    """What --json holds."""
    search, verdict, known = found.document.search, found.verdict, found.posterior
    noun = found.document.asked.noun
    return {
        "kind": "bisect",
        "schema": 1,
        "range": f"{noun}s",
        "verdict": verdict.kind,
        "exit": EXIT_CODES[verdict.kind],
        "sentence": sentence(found),
        "of_merge": merge_sentence(found),
        "ends": ends(found.document) if known is not None else "",
        "reason": verdict.reason,
        "equal_ends": verdict.nothing,
        "flaky": list(verdict.flaky),
        "changes": [_change(found, one) for one in verdict.suspects],
        "prior": told_of_prior(search.weights),
        "good": search.good,
        "bad": search.bad,
        f"{noun}s": [
            {
                noun: commit,
                "subject": found.subjects.get(commit, ""),
                "probability": None if known is None or place == 0 else float(known.by_commit[place - 1]),
                "weight": search.weights[place - 1] if search.weights and place else None,
                "built": search.built.get(place),
                "log_ratios": [] if search.what == "exact" else list(search.measured.get(place, ())),
                "outcomes": [end.model_dump() for end in ends_of(found.document, commit)],
            }
            for place, commit in enumerate(search.commits)
        ],
        "builds": [{noun: one.commit, **one.model_dump(exclude={"commit"})} for one in found.document.made],
        "pairs": sum(len(visit.values) for visit in found.document.all_visits),
        "attribution": [one.model_dump(mode="json", by_alias=True) for one in found.attributed],
        "asked": found.document.asked.model_dump(),
        "branches": [content(one) for one in found.branches],
        "follow_ups": [asdict(one) for one in found.follow_ups],
    }


def _change(found: Found, one: Suspects) -> dict[str, object]:
    change_of: dict[str, object] = {"log_ratio": one.step, "change": change(found.document.asked, one.step)}
    if found.document.asked.exact:
        sides = before_and_after(found.document, one)
        change_of = {name: ends[0].model_dump() for name, ends in zip(("before", "after"), sides, strict=True)}
    return {
        f"{found.document.asked.noun}s": list(one.inseparable),
        "credible": list(one.commits),
        "probability": one.probability,
        "certainty": one.certainty,
        **change_of,
        "closing": [_closing(found, one, made) for made in closing_of(found.document, one).values()],
    }


def _closing(found: Found, suspect: Suspects, one: Compared) -> dict[str, object]:
    """What was measured after the verdict. Of times, shares by which the second of the two builds differs."""
    again, asked = interval(one), found.document.asked
    ends = outcomes(one) or ((), ())
    sides = sorted(change(asked, side) for side in (again.low, again.high)) if again is not None else None
    return {
        "what": one.what,
        "base": one.base,
        "commit": one.commit,
        "reason": one.reason,
        "shows_it": shows(found.document, suspect, one) if one.what == "parent" else None,
        "takes_it_back": takes_back(found.document, suspect, one) if one.what == "revert" else None,
        "change": change(asked, again.estimate) if again is not None else None,
        "interval": sides,
        "level": again.level if again is not None else None,
        "log_ratios": [] if asked.exact or not one.visits else list(one.visits[0].values),
        "outcomes": [[end.model_dump() for end in side] for side in ends],
    }


def markdown(found: Found, heading: str = "##", pictures: Pictures | None = None) -> str:
    """What people are shown of it; `pictures` are those of what changed inside."""
    search, verdict, noun = found.document.search, found.verdict, found.document.asked.noun
    parts = [
        f"{heading} {_headline(verdict, noun)}",
        f"Range: `{short(search.good)}` (good) to `{short(search.bad)}` (bad), "
        f"{counted(len(search.commits) - 1, noun)}. {cost(found.document)}. {_sentence(told_of_prior(search.weights))}",
    ]
    for one in verdict.suspects:
        parts += _suspect(found, one)
    parts += [_follow_up(one) for one in found.follow_ups]
    if verdict.kind in ("not reproduced", "environment", "budget spent") and found.posterior is not None:
        parts += _ends(found)
    if verdict.reason and (verdict.kind not in ("not reproduced", "environment") or is_doubtful(found)):
        parts.append(f"It ended because: {inline_code(verdict.reason)}")
    parts += [f"- {inline_code(text)}" for text in verdict.environment]
    parts += _table(found)
    parts += _flaky(found)
    parts += _unbuildable(found)
    for attributed in found.attributed:
        parts += markdown_of_change(attributed, f"{heading}#", pictures or {})
    for branch in found.branches:
        parts.append(f"{heading}# In the branch up to `{short(branch.document.search.bad)}` that the merge brought in")
        parts.append(markdown(branch, f"{heading}##", pictures))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _headline(verdict: Verdict, noun: Noun) -> str:
    if verdict.kind == "culprit" and verdict.suspects[0].certainty == "likely":
        return LIKELY
    return HEADLINES[verdict.kind].format(noun=noun)


def _ends(found: Found) -> list[str]:
    if found.document.asked.exact:
        return [inline_code(_sentence(ends(found.document)))]  # which quotes what runs said
    return [
        _sentence(ends(found.document)),
        f"Probability that the ends are equal: {found.verdict.nothing:.2f}.",
    ]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _suspect(found: Found, one: Suspects) -> list[str]:
    what_changed = change_text(found.document, one)
    step = inline_code(what_changed) if found.document.asked.exact else f"**{what_changed}**"
    names = ", ".join(f"`{short(commit)}`" for commit in one.inseparable[:MOST_ROWS])
    what = (
        f"One {found.document.asked.noun}"
        if len(one.inseparable) == 1
        else f"One of {len(one.inseparable)} that no build tells apart"
    )
    lines = [
        f"{step} at {names}. {what}, probability {one.probability:.3f} ({one.certainty}); credible set of "
        f"{len(one.commits)}."
    ]
    closing = closing_of(found.document, one).values()
    for made, text in zip(closing, closing_texts(found.document, one), strict=True):
        foreign = found.document.asked.exact or made.reason  # quotes what runs or git said
        lines.append(inline_code(_sentence(text)) if foreign else f"**{_sentence(text)}**")
    for commit in one.inseparable[:MOST_ROWS]:
        facts = found.facts.get(commit)
        if facts is None:
            continue
        told = ", ".join(map(inline_code, filter(None, (facts.subject, facts.author, facts.date))))
        lines.append(f"`{short(commit)}` {told}")
        if facts.stat:
            lines.append("\n".join(["```text", *(_harmless(line) for line in facts.stat), "```"]))
    return lines


def _follow_up(one: FollowUp) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", one.command)), default=0))
    return (
        f"{few([f'`{name}`' for name in one.names])} brought {counted(one.commits, 'commit')} of the main branch, "
        f"`{short(one.good)}` (good) to `{short(one.bad)}` (bad). To bisect them:\n\n{fence}sh\n{one.command}\n{fence}"
    )


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
    exact = found.document.asked.exact
    heading = "runs" if exact else "against good"
    lines = [f"| {found.document.asked.noun} | subject | probability | | {heading} |", "|---|---|--:|---|---|"]
    for place in rows:
        commit = search.commits[place]
        values = search.measured.get(place, ())
        against = "not measured" if search.built.get(place) is None else "does not build"
        if values and exact:
            against = inline_code(in_brief(ends_of(found.document, commit)))
        elif values:
            mean = percent(change(found.document.asked, sum(values) / len(values)))
            against = f"{mean} in {len(values)}"
        bar = "█" * round(BAR * min(chances[place], 1.0))
        lines.append(
            f"| `{short(commit)}` | {inline_code(found.subjects.get(commit, '')[:80])} | {chances[place]:.3f} | "
            f"{bar} | {against} |"
        )
    return ["\n".join(lines)]


def _flaky(found: Found) -> list[str]:
    flaky = found.verdict.flaky
    if not flaky:
        return []
    lines = [
        f"- `{short(commit)}`: {inline_code(told(ends_of(found.document, commit)))}" for commit in flaky[:MOST_ROWS]
    ]
    return [f"{len(flaky)} whose runs disagree (flaky), which say nothing of the change:", "\n".join(lines)]


def _unbuildable(found: Found) -> list[str]:
    failed = [one for one in found.document.search.attempts if not one.ok]
    if not failed:
        return []
    lines = [f"- `{short(one.commit)}`: {inline_code(one.reason)}" for one in failed[:MOST_ROWS]]
    return [f"{len(failed)} that do not build or cannot be measured:", "\n".join(lines)]
