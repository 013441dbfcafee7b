"""A file of actions: what a job that may read the store leaves for one that may write on GitHub, about one comment."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.errors import BotError
from bot.github.actions import Action, Dispatch, Number, React, Reply
from bot.whole_file import write_whole
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
MOST_ACTIONS = 20
LARGEST_BYTES = 2 * 2**20
MayStart = Callable[[Dispatch], bool]


class _Actions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)

    kind: Literal["actions"] = "actions"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    issue: Number  # below which the comment stands
    comment: Number
    actions: Annotated[tuple[Action, ...], Field(max_length=MOST_ACTIONS)]


def write_actions(path: Path, issue: int, comment: int, actions: tuple[Action, ...]) -> None:
    content = _Actions(issue=issue, comment=comment, actions=actions).model_dump_json(by_alias=True, indent=1) + "\n"
    write_whole(path, content.encode(), make_folder=True)


def actions_about(content: bytes, where: str, issue: int, comment: int, may_start: MayStart) -> tuple[Action, ...]:
    """The actions in a file's content, which answer this comment and no other: replies below its issue, reactions to
    it, and the start of what `may_start` allows. Raises BotError for all else."""
    try:
        read = _Actions.model_validate_json(content)
    except ValidationError as error:
        raise BotError(f"{where}: {first_problem(error)}; make it with `torchbench bot handle-event --out`") from error
    if (read.issue, read.comment) != (issue, comment):
        raise BotError(
            f"{where}: answers comment {read.comment} on issue {read.issue}, not {comment} on {issue}; start the "
            "workflow by a new comment"
        )
    for action in read.actions:
        if not _is_an_answer(action, issue, comment, may_start):
            raise BotError(f"{where}: {action.kind} is no answer to comment {comment} on issue {issue}")
    return read.actions


def _is_an_answer(action: Action, issue: int, comment: int, may_start: MayStart) -> bool:
    match action:
        case Reply(number=number):
            return number == issue
        case React(comment=reacted):
            return reacted == comment
        case Dispatch():
            return may_start(action)
    return False
