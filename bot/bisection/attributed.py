"""What inside the model a culprit changed, as it is stored with the bisection and told: sentences, Markdown."""

from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from torchbenchmark.foreign_text import inline_code
from torchbenchmark.profiles.attribution import Attribution
from torchbenchmark.profiles.tables import how_judged, in_brief, markdown_of
from torchbenchmark.quantity import few

SCHEMA = 1
SHORT = 12  # digits of a commit
Pictures = Mapping[tuple[str, str], str]  # (head, test) -> where its bars are drawn, as a link names it


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class CommitFit(_Schema):
    """What a commit touched of that which differs."""

    commit: str
    share: float  # of what all causes change
    causes: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # operator or kernel -> touched paths


class Attributed(_Schema):
    """One change: the build before it against the one with it."""

    kind: Literal["attribution of a bisection"] = "attribution of a bisection"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    base: str
    head: str
    fits: tuple[CommitFit, ...] = ()  # of all commits that it may be, those that fit best first
    attribution: Attribution | None = None
    traces: tuple[str, ...] = ()  # keys in the store, or files of this machine
    reason: str = ""  # why there is no attribution


def sentences(one: Attributed) -> list[str]:
    """Plain text: what got slower in each test, and which touched file holds it."""
    if one.attribution is None:
        return [f"what got slower inside is not known: {one.reason}"]
    return [*(in_brief(test) for test in one.attribution.tests), *([fit] if (fit := fit_sentence(one)) else [])]


def fit_sentence(one: Attributed, quoted: Callable[[str], str] = str) -> str:
    """Which touched file holds what differs; of several commits which of them touched it. Empty if none does."""
    best = one.fits[0] if one.fits else None
    if best is None or not best.causes:
        return ""
    who = "the commit"
    if len(one.fits) > 1:
        who = f"of {len(one.fits)} commits {quoted(best.commit[:SHORT])} fits best: it"
    by_path: dict[str, list[str]] = {}
    for cause, paths in best.causes.items():
        name = cause.rpartition("::")[2] or cause
        by_path.setdefault(quoted(few(paths)), []).append(f"{quoted(name)} ({_what_happened(one, cause)})")
    return f"{who} touches " + "; ".join(f"{paths}, which holds {few(causes)}" for paths, causes in by_path.items())


def _what_happened(one: Attributed, cause: str) -> str:
    tests = one.attribution.tests if one.attribution is not None else ()
    rows = [row for test in tests for _, row in test.found() if row.name == cause]
    return ", ".join(rows[0].verdicts) if rows else "it differs"


def markdown(one: Attributed, heading: str, pictures: Pictures) -> list[str]:
    """Paragraphs. Names of operators, tests and paths are foreign, and code spans."""
    parts = [f"{heading} What got slower inside, `{one.base[:SHORT]}` to `{one.head[:SHORT]}`"]
    if one.attribution is None:
        return [*parts, f"It is not known: {inline_code(one.reason)}"]
    for test in one.attribution.tests:
        parts += [f"**{inline_code(in_brief(test))}**", "\n".join(markdown_of(test)).rstrip("\n")]
        if link := pictures.get((one.head, test.test)):
            parts.append(f"![stacked bars of both builds](<{link}>)")
    if fit := fit_sentence(one, inline_code):
        parts.append(f"{fit[0].upper()}{fit[1:]}.")
    if len(one.fits) > 1:
        lines = [f"{number}. `{fit.commit[:SHORT]}`{_told_fit(fit)}" for number, fit in enumerate(one.fits, start=1)]
        parts.append("\n".join(["By what they touched, those that fit best first:", "", *lines]))
    pairs = max((test.pairs for test in one.attribution.tests), default=0)
    parts.append(f"- {how_judged(one.attribution, pairs)}")
    if one.traces:
        parts.append(f"Traces: {', '.join(inline_code(trace) for trace in one.traces)}")
    return [part for part in parts if part]


def _told_fit(fit: CommitFit) -> str:
    if not fit.causes:
        return ": nothing that differs"
    causes = ", ".join(inline_code(f"{few(paths)}: {cause}") for cause, paths in fit.causes.items())
    return f", {100 * fit.share:.0f} % of what differs: {causes}"
