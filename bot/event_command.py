"""`torchbench bot handle-event`: the one entry of all workflows that heed what people say on GitHub.

Nothing of what a comment says goes into a log, a shell or an expression.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from baselines.store import open_store
from baselines.store.unwritten import Unwritten
from bot.benchmark_request import written
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.elsewhere.plain_file import read_bounded
from bot.errors import BotError
from bot.github.action_file import write_actions
from bot.github.actions import Action, Measure
from bot.github.alert_store import find_alert
from bot.github.answering import answer, apology, place_of, said_in
from bot.github.commands.command import Conversation
from bot.github.events import CommentEvent, Ignored, read_event
from bot.github.issue import Issue, key_in
from bot.github.issue_file import IssueFile
from bot.github.workflow_log import set_output, step
from torchbenchmark.errors import SentinelError
from torchbenchmark.terminal import console, new_app

if TYPE_CHECKING:
    from bot.github.client import Client

LARGEST_PAYLOAD = 25 * 2**20  # bytes; GitHub sends no larger one


def register(app: typer.Typer) -> None:
    from bot.answer_command import answer_command  # which reads the same events

    bot = new_app("What people say to the bot on GitHub, and what it answers.")
    bot.command("handle-event")(handle_event)
    bot.command("answer")(answer_command)
    app.add_typer(bot, name="bot")


def handle_event(
    event: Annotated[str, typer.Option(help="The event's name, as GITHUB_EVENT_NAME has it.")],
    payload: Annotated[Path, typer.Option(help="The event's file, as GITHUB_EVENT_PATH names it.")],
    config: ConfigOption = Path("nightly.yaml"),
    out: Annotated[
        Path | None, typer.Option(help="Leave what is to be written on GitHub in this file, for another job.")
    ] = None,
    issues: Annotated[
        Path | None, typer.Option(help="Leave the issue of an alert, as it is now, in this file, for another job.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what is to be done, and write nothing on GitHub.")
    ] = False,
) -> None:
    """Answer a comment. Exit code 0 too where an event asks nothing of the bot.

    In a job of GitHub Actions, if something is to be measured, the outputs `request` and `runner`.
    """
    with in_a_job("handle-event"):
        heard = read_event(event, read_payload(payload))
        if isinstance(heard, Ignored):
            console.print(f"ignored: {heard.why}", markup=False)
            return
        said = said_in(heard)
        if said is None:
            console.print("ignored: the comment has no command")
            return
        chosen = load_config(config)
        client = _connection(heard, chosen)
        talk = conversation(heard, chosen, client, dry_run)
        try:
            answered = answer(said, talk)
            issue = _issue_now(talk) if answered.actions else None
        except SentinelError:
            with suppress(SentinelError):
                _do(apology(talk).actions, None, talk, client, out, issues, dry_run)
            raise
        console.print(answered.outcome, markup=False)
        _do(answered.actions, issue, talk, client, out, issues, dry_run)


@contextmanager
def in_a_job(name: str) -> Iterator[None]:
    """What is told in the way of GitHub Actions, where a job of it runs this."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    with step(name):
        yield


def read_payload(path: Path) -> dict[str, Any]:
    """The event's content. Raises BotError for what GitHub would not send."""
    content = read_bounded(path, LARGEST_PAYLOAD)
    try:
        payload = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BotError(f"{path.name}: is no JSON, as every event of GitHub is") from error
    if not isinstance(payload, dict):
        raise BotError(f"{path.name}: is no event of GitHub, which has keys with values")
    return payload


def _connection(event: CommentEvent, config: NightlyConfig) -> "Client":
    """To GitHub, one for all that a command reads and writes."""
    from bot.github.client import Client  # PyGithub takes longer than most commands do

    repository = event.repository.full_name
    here = os.environ.get("GITHUB_REPOSITORY", repository)
    if here.casefold() != repository.casefold():
        raise BotError(f"the event is of another repository than this job, which is of {here}")
    return Client(repository, config.github_login)


def conversation(event: CommentEvent, config: NightlyConfig, client: "Client", dry_run: bool = False) -> Conversation:
    """What a command is answered with, in this process and its environment."""
    from bot.github.github_looking import GitHubLooking  # as its client, only now

    repository, user = event.repository.full_name, event.comment.user
    assert user is not None  # read_event ignores it
    run = os.environ.get("GITHUB_RUN_ID", "")
    server = os.environ.get("GITHUB_SERVER_URL", "")
    return Conversation(
        event=event,
        config=config,
        look=GitHubLooking(client),
        open_store=lambda: Unwritten(open_store(config.store)) if dry_run else open_store(config.store),
        now=datetime.now(UTC),
        by=user.login,
        run=int(run) if run.isdecimal() else None,
        run_url=f"{server}/{repository}/actions/runs/{run}" if run.isdecimal() and server else "",
    )


def _issue_now(talk: Conversation) -> Issue | None:
    """The issue of the alert below which the comment stands, as it is after what was said; None on a pull request, and
    where the store has no such alert."""
    if place_of(talk.event) != "alert":
        return None
    from bot.alert_issue import issue_of

    key = key_in(talk.event.issue.body)
    alert = find_alert(talk.open_store(), key) if key is not None else None
    return None if alert is None else issue_of(alert, talk.config)


def _do(
    actions: tuple[Action, ...],
    issue: Issue | None,
    talk: Conversation,
    client: "Client",
    out: Path | None,
    issues: Path | None,
    dry_run: bool,
) -> None:
    event, config = talk.event, talk.config
    if dry_run:
        shown = [action.model_dump(mode="json", by_alias=True) for action in actions]
        console.print(json.dumps(shown, indent=1), markup=False, soft_wrap=True)
        return
    if not actions:
        return
    if out is None:
        _perform(actions, issue, client)
    else:
        write_actions(out, event.issue.number, event.comment.id, actions)
    if issues is not None:
        left = IssueFile(issues)
        if issue is not None:
            left.put(issue)
    for action in actions:
        if isinstance(action, Measure) and os.environ.get("GITHUB_OUTPUT"):
            set_output("request", written(action.request))
            set_output("runner", json.dumps(config.pull_requests.runner))


def _perform(actions: tuple[Action, ...], issue: Issue | None, client: "Client") -> None:
    from bot.github.saying import say  # PyGithub takes longer than most commands do

    mine = [action for action in actions if not isinstance(action, Measure)]  # which is another job's
    for refused in say(client, mine, issue):
        console.print(refused, markup=False)
