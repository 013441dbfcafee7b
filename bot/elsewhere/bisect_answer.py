"""The answer to a round of a bisection: which commits were built, and what their pairs gave.

It comes from machines that run code which nobody has reviewed, so it is believed in nothing but its numbers: it is
bounded, every field is checked, and the search goes on from the stored document by the rules of this side.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.bisection.document import Document, Made, Visit
from bot.bisection.driving import REHEARSAL, rehearsed, with_made
from bot.bisection.state import with_build, with_probes
from bot.elsewhere.bisect_question import BisectQuestion, Commit
from bot.elsewhere.plain_file import read_bounded
from bot.elsewhere.question import Digest
from bot.errors import BotError
from bot.whole_file import write_whole
from torchbenchmark.foreign_text import one_line
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
LARGEST_BYTES = 4 * 2**20
MOST_BUILDS = 1_000
MOST_VISITS = 1_000
MOST_PAIRS = 1_000  # of a visit
LONGEST_S = 30 * 86_400.0
Ratio = Annotated[float, Field(ge=-50, le=50, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=2_000)]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)


class BuiltThere(_Schema):
    """An attempt to build a commit, or to measure one that was built."""

    commit: Commit
    ok: bool
    reason: Text = ""
    seconds: Seconds = 0.0


class VisitedThere(_Schema):
    commit: Commit
    values: Annotated[tuple[Ratio, ...], Field(min_length=1, max_length=MOST_PAIRS)]
    seconds: Seconds = 0.0


class BisectAnswer(_Schema):
    """What a round has come to, in its order."""

    kind: Literal["answer of a bisection"] = "answer of a bisection"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    question: Digest
    machine: Annotated[str, Field(max_length=300)]  # the model of its CPU
    builds: Annotated[tuple[BuiltThere, ...], Field(max_length=MOST_BUILDS)] = ()
    visits: Annotated[tuple[VisitedThere, ...], Field(max_length=MOST_VISITS)] = ()
    left_out: Annotated[tuple[BuiltThere, ...], Field(max_length=MOST_BUILDS)] = ()  # built, and not to be measured


def answer_of(digest: str, before: Document, after: Document) -> BisectAnswer:
    """What was added to a document. A visit that is open is measured again."""
    tried = {one.commit for one in before.search.attempts if not one.ok}
    visits = [one for one in after.visits[sum(bool(one.values) for one in before.visits) :] if one.values]
    built = {one.commit for one in after.made if not one.ok}
    return BisectAnswer(
        question=digest,
        machine=after.machine,
        builds=tuple(
            BuiltThere(commit=one.commit, ok=one.ok, reason=one_line(one.reason), seconds=one.seconds)
            for one in after.made[len(before.made) :]
        ),
        visits=tuple(VisitedThere(commit=one.commit, values=one.values, seconds=one.seconds) for one in visits),
        left_out=tuple(
            BuiltThere(commit=one.commit, ok=False, reason=one_line(one.reason))
            for one in after.search.attempts
            if not one.ok and one.commit not in tried and one.commit not in built
        ),
    )


def with_answer(question: BisectQuestion, answer: BisectAnswer) -> Document:
    """The document of a question, with what the answer adds. Raises BotError for what the range does not hold."""
    document = question.begun
    if not document.machine:
        document = document.model_copy(update={"machine": one_line(answer.machine)})
    elif document.machine != answer.machine:
        raise BotError(
            f"the answer is of a machine with {one_line(answer.machine)}, and the bisection was begun on one with "
            f"{document.machine}: their pairs are not added up"
        )
    visits = tuple(one for one in document.visits if one.values)  # one that is open was measured anew
    document = document.model_copy(update={"visits": visits})
    for one in answer.builds:
        made = Made(commit=one.commit, ok=one.ok, reason=one_line(one.reason), seconds=one.seconds)
        document = document.model_copy(update=with_made(document, made))
    for visited in answer.visits:
        document = document.model_copy(update=_with_visit(document, visited))
    for one in answer.left_out:
        search = with_build(document.search, one.commit, ok=False, reason=one_line(one.reason))
        document = document.model_copy(update={"search": search})
    return document


def _with_visit(document: Document, one: VisitedThere) -> dict[str, Any]:
    number, values = len(document.visits), one.values
    visit = Visit(number=number, commit=one.commit, n=len(values), seconds=one.seconds, values=values)
    after = document.model_copy(update={"visits": (*document.visits, visit)})
    if document.rehearsed:
        return {"visits": after.visits, "search": with_probes(document.search, one.commit, values)}
    if one.commit != document.search.good or len(values) > REHEARSAL:
        raise BotError("the answer does not begin with pairs of the good end against itself")
    return rehearsed(after)


def write_answer(answer: BisectAnswer, path: Path) -> None:
    write_whole(path, answer.model_dump_json(by_alias=True).encode() + b"\n")


def read_answer(path: Path, digest: str) -> BisectAnswer:
    """The answer in a plain file, which may hold anything. Raises BotError for one to another question."""
    content = read_bounded(path, LARGEST_BYTES)
    try:
        answer = BisectAnswer.model_validate_json(content)
    except (ValidationError, RecursionError) as error:
        told = first_problem(error) if isinstance(error, ValidationError) else "nested too deeply"
        raise BotError(f"{path.name}: {one_line(told)[:300]}") from None
    if answer.question != digest:
        raise BotError(f"{path.name}: answers another question")
    return answer
