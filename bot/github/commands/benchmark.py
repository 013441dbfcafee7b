"""`/benchmark [suite, models, globs …] [key=value …]`: measure the head of a pull request against its base."""

from collections.abc import Sequence

from pydantic import ValidationError

from bot.benchmark_request import FEWEST_PAIRS, BenchmarkRequest
from bot.errors import BotError
from bot.github.actions import Action, Check, Measure, React, Status
from bot.github.commands.asked import Asked, parse_asked
from bot.github.commands.chosen_tests import Chosen, chosen_tests
from bot.github.commands.command import Command, Conversation, WrongUse
from bot.github.commands.commits import Commits, commits_to_compare
from bot.github.issue import key_of
from bot.github.request_status import queued_body
from bot.pages.request_status import SHORT
from bot.pull_request_settings import PullRequestSettings
from torchbenchmark.quantity import counted
from torchbenchmark.yaml_files import first_problem

USAGE = "`/benchmark [suite, models, globs …] [key=value …]`: measure this pull request against its base"


def request_benchmark(asked: Asked, conversation: Conversation, *, profile: bool = False) -> Sequence[Action]:
    """The request and what people see of it: a reaction, the status comment, the check run."""
    event, config = conversation.event, conversation.config
    limits = config.pull_requests
    repository, number = event.repository.full_name, event.issue.number
    commits = commits_to_compare(asked, number, repository, event.comment.created_at, conversation.look)
    chosen = chosen_tests(asked, config)
    request = _request(asked, conversation, commits, chosen, profile)
    status = queued_body(request, conversation.run, conversation.run_url, chosen.left_out)
    actions: list[Action] = [
        React(comment=event.comment.id, content="eyes"),
        Status(number=number, key=request.key, body=status),
    ]
    if limits.check_run:
        actions.append(check_of(request, status))
    return (*actions, Measure(request=request))


def check_of(request: BenchmarkRequest, summary: str) -> Check:
    """The check run of a request that waits."""
    title = f"queued: {counted(len(request.tests), 'test')} against {request.base[:SHORT]}"
    return Check(commit=request.head, key=request.key, state="queued", title=title, summary=summary)


def _request(
    asked: Asked, conversation: Conversation, commits: Commits, chosen: Chosen, profile: bool
) -> BenchmarkRequest:
    event, limits = conversation.event, conversation.config.pull_requests
    repository = event.repository.full_name
    try:
        return BenchmarkRequest(
            key=request_key(repository, event.comment.id),
            repository=repository,
            pull=event.issue.number,
            comment=event.comment.id,
            asked_by=conversation.by,
            base=commits.base,
            head=commits.head,
            head_repository=commits.head_repository,
            base_is=commits.base_is,
            suite=chosen.suite,
            tests=chosen.tests,
            device=chosen.device,
            pairs=_pairs(asked, limits),
            budget_minutes=_budget(asked, limits),
            profile=profile,
        )
    except ValidationError as error:
        raise BotError(f"the request of comment {event.comment.id}: {first_problem(error)}") from error


def request_key(repository: str, comment: int) -> str:
    """One comment asks once, however often its job is started again."""
    return key_of("benchmark", repository, str(comment))


def _pairs(asked: Asked, limits: PullRequestSettings) -> int:
    if asked.pairs is None:
        return limits.pairs
    if not FEWEST_PAIRS <= asked.pairs <= limits.most_pairs:
        few_or_many = "few" if asked.pairs < FEWEST_PAIRS else "many"
        raise WrongUse(f"`pairs=` {asked.pairs} is too {few_or_many}", f"say {FEWEST_PAIRS} to {limits.most_pairs}")
    return asked.pairs


def _budget(asked: Asked, limits: PullRequestSettings) -> float:
    if asked.budget_minutes is None:
        return limits.budget_minutes
    if asked.budget_minutes > limits.most_budget_minutes:
        raise WrongUse(
            f"`budget=` {asked.budget_minutes:g} minutes is too much", f"say at most {limits.most_budget_minutes:g}"
        )
    return asked.budget_minutes


COMMAND = Command("benchmark", "pull request", (USAGE,), parse_asked, request_benchmark)
