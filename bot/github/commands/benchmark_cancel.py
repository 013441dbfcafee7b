"""`/benchmark cancel`: end what is waiting or at work for a pull request."""

from collections.abc import Sequence

from bot.github.actions import Action, CancelRun, Check, React, Status
from bot.github.commands.command import Command, Conversation, Refused, not_permitted
from bot.github.commands.replying import no_words
from bot.github.request_status import RequestStatus, statuses_in
from bot.pages.request_status import SHORT
from torchbenchmark.foreign_text import inline_code

USAGE = "`/benchmark cancel`: end what is waiting or at work here"
_ENDED = "completed"


def handle(asked: None, conversation: Conversation) -> Sequence[Action]:
    event, look = conversation.event, conversation.look
    unfinished = [one for one in statuses_in(look.bot_comments(event.issue.number)) if not one.is_over]
    limits = conversation.config.pull_requests
    if not conversation.may_command:
        own = [one for one in unfinished if one.asked_by.casefold() == conversation.by.casefold()]
        if not own:
            raise not_permitted(limits.teams)
        unfinished = own
    workflow = _workflow_of(conversation)
    alive = [one for one in unfinished if _is_alive(one, workflow, conversation)]
    if not alive:
        raise Refused("nothing is waiting or at work here", "`/benchmark status` says what there was")
    actions: list[Action] = [React(comment=event.comment.id, content="+1")]
    for one in alive:
        actions.append(CancelRun(run=one.run))
        told = f"{one.now('cancelled').hidden}\n{_told(one, conversation)}"
        actions.append(Status(number=event.issue.number, key=one.key, body=told))
        if limits.check_run:
            actions.append(_check(one))
    return actions


def _workflow_of(conversation: Conversation) -> str | None:
    """The workflow whose runs may be ended; None where this is none. Others of the repository write comments as the
    same account: who makes one of them repeat a mark of ours must not end a run of theirs."""
    own = conversation.look.run(conversation.run) if conversation.run is not None else None
    return own.workflow if own is not None else None


def _is_alive(status: RequestStatus, workflow: str | None, conversation: Conversation) -> bool:
    run = conversation.look.run(status.run) if status.run else None
    if run is None or run.state == _ENDED or run.id == conversation.run:
        return False
    return workflow is None or run.workflow == workflow


def _told(status: RequestStatus, conversation: Conversation) -> str:
    return (
        f"**Cancelled** by {inline_code(conversation.by)}: head `{status.head[:SHORT]}`, which "
        f"{inline_code(status.asked_by)} had asked for. No verdict follows."
    )


def _check(status: RequestStatus) -> Check:
    return Check(
        commit=status.head,
        key=status.key,
        state="completed",
        conclusion="cancelled",
        title="cancelled",
        summary="A comment has cancelled it; `/benchmark` asks anew.",
    )


COMMAND = Command("benchmark cancel", "pull request", (USAGE,), no_words("/benchmark cancel"), handle, is_for_all=True)
