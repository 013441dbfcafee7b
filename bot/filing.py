"""Filing: where the configuration sends issues, and the command that files what another job has left in a file."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from bot.config import ConfigOption, NightlyConfig, load_config
from bot.errors import BotError
from bot.github.issue import Filed, Issue, Tracker
from bot.github.issue_file import IssueFile, read_issues
from bot.github.outbox import Outbox
from torchbenchmark.terminal import console

IssuesOption = Annotated[
    Path | None,
    typer.Option(help="Leave the issues in this file, for `torchbench file` in another job, instead of filing them."),
]


def register(app: typer.Typer) -> None:
    app.command("file")(file_command)


def file_command(
    issues: Annotated[Path, typer.Argument(help="The file that `--issues` of conclude or watchdog has written.")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """File the issues in a file: create, update, close. What is filed already, unchanged, stays as it is."""
    tracker = open_tracker(load_config(config))
    for filed in file_all(tracker, read_issues(issues)):
        tell(filed)


def file_all(tracker: Tracker, issues: Iterable[Issue]) -> list[Filed]:
    """File every issue, also if another cannot be. Raises BotError of the first that could not, when all were tried."""
    filed: list[Filed | None] = []
    problems: list[BotError] = []
    for issue in issues:
        try:
            filed.append(tracker.put(issue))
        except BotError as problem:
            problems.append(problem)
    if problems:
        more = f" (and {len(problems) - 1} more issues could not be filed)" if len(problems) > 1 else ""
        raise BotError(f"{problems[0]}{more}") from problems[0]
    return [one for one in filed if one is not None]


def tell(filed: Filed | None) -> None:
    """Say what came of filing an issue."""
    if filed is not None:
        console.print(Text(f"issue {filed.effect}: {filed.title}\n  {filed.where}"))


def issue_file(path: Path, config: NightlyConfig) -> IssueFile:
    """A file of issues for another job to file, that knows what the tracker has if this job may read it."""
    reads = config.github is None or os.environ.get("GITHUB_TOKEN", "").strip()
    return IssueFile(path, open_tracker(config) if reads else None)


def open_tracker(config: NightlyConfig) -> Tracker:
    """Where the configuration says that issues go."""
    if config.github is None:
        return Outbox(config.outbox)
    try:
        from bot.github.client import Client
        from bot.github.issues import GitHubIssues
    except ImportError as error:
        raise BotError(
            "`github` in the configuration needs PyGithub; install it with: pip install 'torchbench-sentinel[bot]'"
        ) from error
    return GitHubIssues(Client(config.github, config.github_login))
