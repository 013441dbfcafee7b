"""`torchbench bot answer`: says on GitHub what another job, which may write the store, has decided about a comment."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.config import ConfigOption, load_config
from bot.elsewhere.plain_file import read_bounded
from bot.errors import BotError
from bot.event_command import in_a_job, read_payload
from bot.github.action_file import LARGEST_BYTES, actions_about
from bot.github.commands.bisect import is_a_start
from bot.github.events import CommentEvent, read_event
from bot.github.issue import Issue, key_in
from bot.github.issue_file import issues_in
from torchbenchmark.terminal import console

LARGEST_ISSUES = 2 * 2**20


def answer_command(
    actions: Annotated[Path, typer.Argument(help="The file that `handle-event --out` has left.")],
    payload: Annotated[Path, typer.Option(help="The event's file, as GITHUB_EVENT_PATH names it.")],
    issues: Annotated[Path, typer.Option(help="The file that `handle-event --issues` has left.")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Answer a comment on an alert by the files of another job, which may be about this comment and no other."""
    from bot.github.client import Client  # PyGithub takes longer than most commands do
    from bot.github.saying import say

    with in_a_job("answer"):
        event = read_event("issue_comment", read_payload(payload))
        if not isinstance(event, CommentEvent) or event.is_on_pull_request:
            raise BotError(f"{payload.name}: is no new comment of a person on an issue; nothing is answered")
        chosen = load_config(config)
        content = read_bounded(actions, LARGEST_BYTES)
        may_start = partial(is_a_start, alert=key_in(event.issue.body))
        wanted = actions_about(content, actions.name, event.issue.number, event.comment.id, may_start)
        issue = _issue_about(issues, event)
        for refused in say(Client(event.repository.full_name, chosen.github_login), wanted, issue):
            console.print(refused, markup=False)
        console.print("answered")


def _issue_about(path: Path, event: CommentEvent) -> Issue | None:
    """The issue below which the comment stands, as it is to be now."""
    key = key_in(event.issue.body)
    read = issues_in(read_bounded(path, LARGEST_ISSUES), path.name)
    if len(read) > 1 or any(one.key != key for one in read):
        raise BotError(f"{path.name}: has another issue than that of the comment, {event.issue.number}")
    return read[0] if read else None
