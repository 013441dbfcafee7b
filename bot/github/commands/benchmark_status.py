"""`/benchmark status`: how far requests are, by the bot's own comments and the runs of the workflow."""

from collections.abc import Sequence

from bot.github.actions import Action
from bot.github.commands.command import Command, Conversation
from bot.github.commands.replying import no_words, reply
from bot.github.looking import WorkflowRun
from bot.github.request_status import RequestStatus, statuses_in
from bot.pages.request_status import SHORT
from torchbenchmark.foreign_text import inline_code

USAGE = "`/benchmark status`: how far it is"
MOST_TOLD = 5  # requests, the newest


def handle(asked: None, conversation: Conversation) -> Sequence[Action]:
    look = conversation.look
    statuses = statuses_in(look.bot_comments(conversation.event.issue.number))[:MOST_TOLD]
    if not statuses:
        return (reply(conversation, "Nothing was measured here yet: `/benchmark` asks for it."),)
    lines = [_line(one, look.run(one.run) if one.run and not one.is_over else None) for one in statuses]
    return (reply(conversation, "\n".join(["**The requests here**, the newest first:", "", *lines])),)


def _line(status: RequestStatus, run: WorkflowRun | None) -> str:
    told = f"- head `{status.head[:SHORT]}`, for {inline_code(status.asked_by)}: {_said(status, run)}"
    return f"{told} ([the run]({run.url}))" if run is not None and run.url.startswith(("https://", "http://")) else told


def _said(status: RequestStatus, run: WorkflowRun | None) -> str:
    if status.is_over:
        return status.stage
    if run is None:
        return f"{status.stage}, and its run is not there any more"
    if run.state == "completed":
        return f"its run has ended while it was {status.stage}; say the command once more if no verdict is below"
    at_work = [_job(name, step) for name, state, step in run.jobs if state == "in_progress"]
    waiting = [inline_code(name) for name, state, _ in run.jobs if state not in ("in_progress", "completed")]
    if at_work:
        return f"at work: {', '.join(at_work)}"
    return f"waiting for a runner: {', '.join(waiting)}" if waiting else "waiting"


def _job(name: str, step: str) -> str:
    return f"{inline_code(name)} at {inline_code(step)}" if step else inline_code(name)


COMMAND = Command("benchmark status", "pull request", (USAGE,), no_words("/benchmark status"), handle, is_for_all=True)
