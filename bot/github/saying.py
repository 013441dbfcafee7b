"""Says on GitHub what was decided about a comment: first what may fail is done, then it is told."""

from collections.abc import Sequence

from bot.github.actions import Action, Dispatch, Reply
from bot.github.client import Client
from bot.github.issue import Issue
from bot.github.issues import GitHubIssues
from bot.github.performing import perform, refusals
from torchbenchmark.errors import SentinelError

NOT_STARTED = (
    "**Not done:** GitHub did not start `{workflow}`. Those who look after the bot find why in the log of the job that "
    "wrote this; is the workflow there and enabled, and may the job start it (`actions: write`)? Then say it again."
)


def say(client: Client, actions: Sequence[Action], issue: Issue | None) -> list[str]:
    """Update the issue of an alert, start workflows, and do the other actions: all of it also if one fails, which is
    raised then. Returns what GitHub refused and nothing hangs on, in words."""
    problems: list[SentinelError] = []
    if issue is not None:
        try:
            GitHubIssues(client).put(issue)
        except SentinelError as problem:
            problems.append(problem)
    said: list[Action] = []
    for action in actions:
        if isinstance(action, Dispatch):
            try:
                perform(client, [action])
            except SentinelError as problem:
                problems.append(problem)
                said = [_not_started(one, action) for one in actions if isinstance(one, Reply)]
                break
    done = perform(client, said or [one for one in actions if not isinstance(one, Dispatch)])
    if problems:
        raise problems[0]
    return refusals(done)


def _not_started(reply: Reply, action: Dispatch) -> Reply:
    return reply.model_copy(update={"body": NOT_STARTED.format(workflow=action.workflow)})
