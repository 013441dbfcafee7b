"""The steps of `.github/workflows/benchmark.yml`, after the planning job has handed on a request."""

import os
import re
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bot.benchmark_request import LONGEST, BenchmarkRequest, read_request
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.elsewhere.plain_file import read_bounded
from bot.errors import BotError
from bot.github.workflow_log import add_summary, annotate, forget_command_files, step
from torchbenchmark.terminal import console

if TYPE_CHECKING:
    from bot.github.client import Client

RequestArgument = Annotated[Path, typer.Argument(help="The file of the request that `handle-event` has handed on.")]
ServerOption = Annotated[str, typer.Option(help="Where the repositories are.", envvar="GITHUB_SERVER_URL")]
BaseOption = Annotated[Path, typer.Option(help="The folder into which base was built.")]
HeadOption = Annotated[Path, typer.Option(help="The folder into which head was built.")]
IntoOption = Annotated[Path, typer.Option(help="The folder for what is left.")]


def register(workflow: typer.Typer) -> None:
    for name, command in (
        ("pull-build", build_command),
        ("pull-measure", measure_command),
        ("pull-profile", profile_command),
        ("pull-pack", pack_command),
        ("follow", follow_command),
        ("report", report_command),
    ):
        workflow.command(name)(command)


def build_command(
    request: RequestArgument,
    side: Annotated[Literal["base", "head"], typer.Option(help="Which commit of it.")],
    into: IntoOption,
    server: ServerOption = "https://github.com",
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Build a side. To be run isolated. Exit code 0, also if it does not build, which is told."""
    from bot.pull_request.measuring import build_side
    from torchbenchmark.cli import end_children_on_termination

    end_children_on_termination()
    forget_command_files()  # the build is not ours
    with step(f"build {side}"):
        build_side(_request(request), side, load_config(config), server, into)


def measure_command(
    request: RequestArgument,
    base: BaseOption,
    head: HeadOption,
    into: IntoOption,
    part: Annotated[str, typer.Option(help="Which part of the pairs, i/n; it goes on with those before.")] = "1/1",
    server: ServerOption = "https://github.com",
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Measure both builds side by side. To be run isolated. Exit code 0, also if nothing could be measured."""
    from bot.pull_request.measuring import measure_part
    from torchbenchmark.cli import end_children_on_termination

    end_children_on_termination()
    forget_command_files()  # the builds are not ours
    with step(f"measure {part}"):
        sides = {"base": base, "head": head}
        measure_part(_request(request), load_config(config), server, sides, _part(part), into)


def profile_command(
    request: RequestArgument,
    base: BaseOption,
    head: HeadOption,
    into: IntoOption,
    server: ServerOption = "https://github.com",
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Profile both builds by turns. To be run isolated. Exit code 0, also if there is no profile."""
    from bot.pull_request.measuring import profile_both
    from torchbenchmark.cli import end_children_on_termination

    end_children_on_termination()
    forget_command_files()  # the builds are not ours
    with step("profile"):
        profile_both(_request(request), load_config(config), server, {"base": base, "head": head}, into)


def pack_command(
    base: BaseOption,
    head: HeadOption,
    measured: Annotated[Path, typer.Option(help="The folder into which was measured.")],
    into: IntoOption,
) -> None:
    """Copy the results out of the folders of the isolated steps, plain files of bounded size alone."""
    from bot.pull_request.artifact import pack

    with step("pack"):
        left_out = pack(base, head, measured, into)
    for told in left_out:
        annotate("warning", "left out of the results", told)


def follow_command(
    request: RequestArgument,
    run: Annotated[int, typer.Option(help="The run of the workflow.", envvar="GITHUB_RUN_ID")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Edit the status comment while the measuring job is at work. Exit code 0, also if it cannot be followed."""
    from bot.github.performing import perform
    from bot.pull_request.following import follow

    with step("follow"):
        asked = _request(request)
        client, look = _connected(asked, load_config(config))
        try:
            follow(asked, run, look, partial(perform, client), time.sleep)
        except BotError as error:  # the report says how it ended, whatever is said meanwhile
            annotate("warning", "the status is not edited any more", str(error))


def report_command(
    request: RequestArgument,
    results: Annotated[Path, typer.Option(help="The folder into which the results were downloaded.")],
    measured: Annotated[
        Literal["success", "failure", "cancelled", "skipped"], typer.Option(help="How that job ended.")
    ],
    server: ServerOption = "https://github.com",
    run: Annotated[int, typer.Option(help="The run of the workflow.", envvar="GITHUB_RUN_ID")] = 0,
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Work out the verdict and tell it: status, check run and comment. Exit code 0, also where results are refused."""
    from bot.github.performing import perform, refusals
    from bot.github.request_status import statuses_in
    from bot.pull_request.answer import read_answer
    from bot.pull_request.reporting import Around, report_actions

    with step("report"):
        asked, chosen = _request(request), load_config(config)
        settings = chosen.pull_requests
        answer = read_answer(asked, results, settings.beyond)
        client, look = _connected(asked, chosen)
        known = {one.key: one for one in statuses_in(look.bot_comments(asked.pull))}
        if (status := known.get(asked.key)) is not None and status.stage == "cancelled":
            console.print("a comment has cancelled the request; nothing is told")
            return
        pull = look.pull_request(asked.pull)
        around = Around(
            job=measured,
            run=run,
            server=server,
            config=str(config),
            run_url=f"{server.rstrip('/')}/{asked.repository}/actions/runs/{run}" if run else "",
            head_now=pull.head,
            check_run=settings.check_run,
            most_pairs=settings.most_pairs,
        )
        actions = report_actions(asked, answer, around)
        refused = refusals(perform(client, actions))
    for told in refused:
        annotate("warning", "GitHub has refused something", told)
    if answer.refused:
        annotate("error", "the results were refused", answer.refused)
    add_summary("".join(f"{one.body}\n" for one in actions if one.kind == "reply") or "No verdict.\n")


def _connected(request: BenchmarkRequest, config: NightlyConfig) -> "tuple[Client, object]":
    """GitHub, for this repository alone: a request of another one is none of this workflow's."""
    from bot.github.client import Client
    from bot.github.github_looking import GitHubLooking

    here = os.environ.get("GITHUB_REPOSITORY", "")
    if here.casefold() != request.repository.casefold():
        raise BotError(f"the request is of {request.repository}, and this is a workflow of {here or 'no repository'}")
    client = Client(request.repository, config.github_login)
    return client, GitHubLooking(client)


def _request(path: Path) -> BenchmarkRequest:
    return read_request(read_bounded(path, 4 * LONGEST).decode(errors="replace"))


def _part(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text)
    if found is None or int(found[1]) > int(found[2]):
        raise BotError(f"--part {text[:20]}: i/n is needed, such as 2/4")
    return int(found[1]), int(found[2])
