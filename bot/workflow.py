"""The steps of the workflows in .github/workflows: the commands of the nightly, told in the way of GitHub Actions.

A step succeeds if it has done its work, whatever it has found: a regression is an annotation, an issue and exit code 0.
So a step can tell it from a crash, which may end with any exit code. docs/actions.md describes the jobs.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from baselines.policy import load_policy
from baselines.report import Report
from baselines.store import open_store
from bot import bisect_steps, pull_request_steps
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.errors import BotError
from bot.filing import issue_file
from bot.github.issue_file import IssueFile
from bot.github.workflow_log import add_summary, annotate, forget_command_files, set_output, step
from bot.nightly import alone
from bot.pages.job_summary import render_summary
from bot.sharded import conclude_files, conclude_nights, plan_run
from bot.watchdog import watch
from torchbenchmark.builds.installation import install
from torchbenchmark.canaries.measuring import Canaries
from torchbenchmark.cli import (
    TerminalReporter,
    end_children_on_termination,
    print_run,
    request_of,
    tell_of_canaries,
)
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.records import Run
from torchbenchmark.runner import nothing_before, start_run
from torchbenchmark.shards import RunPlan, parse_shard, read_plan
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, EXIT_REGRESSION, new_app

if TYPE_CHECKING:
    from bot.elsewhere.asking import Asking

MOST_NAMED = 20  # failed tests in one annotation
_LEFT_OUT = "something was left out; see the log of this step"

IssuesOption = Annotated[Path, typer.Option(help="The file in which issues are left, for `torchbench file`.")]


def register(app: typer.Typer) -> None:
    workflow = new_app("The steps of the GitHub workflows (docs/actions.md).")
    for name, command in (
        ("plan", plan_command),
        ("measure", measure_command),
        ("conclude", conclude_command),
        ("confirm", confirm_command),
        ("confirm-again", confirm_again_command),
        ("decide", decide_command),
        ("watchdog", watchdog_command),
    ):
        workflow.command(name)(command)
    bisect_steps.register(workflow)
    pull_request_steps.register(workflow)
    app.add_typer(workflow, name="workflow")


def plan_command(
    shards: Annotated[
        int | None, typer.Option(min=1, help="How many machines measure (default: what the configuration says).")
    ] = None,
    config: ConfigOption = Path("nightly.yaml"),
    out: Annotated[Path, typer.Option(help="The file of the plan to write.")] = Path("plan.json"),
) -> None:
    """`torchbench plan`. Outputs: `digest`, by which its file is known again, `shards`, the jobs of the matrix, and
    `measuring` and `second`, the labels of their runners (none: there is no second)."""
    with step("plan"):
        chosen = load_config(config)
        plan = plan_run(chosen, chosen.runners.shards if shards is None else shards, out)
    set_output("digest", hashlib.sha256(out.read_bytes()).hexdigest())
    set_output("shards", json.dumps(matrix(len(plan.shards))))
    set_output("measuring", json.dumps(chosen.runners.measuring))
    set_output("second", json.dumps(chosen.runners.second) if chosen.runners.second else "")


def matrix(count: int) -> list[dict[str, str]]:
    """One job per shard: its number, and a name that a file and an artifact may have. Nothing of it is foreign text."""
    return [
        {"shard": f"{index}/{count}", "name": f"shard-{index:0{len(str(count))}}-of-{count}"}
        for index in range(1, count + 1)
    ]


def measure_command(
    plan: Annotated[Path, typer.Option(help="The plan of the run.")],
    shard: Annotated[str, typer.Option(help="Which shard to measure, i/n.")],
    out: Annotated[Path, typer.Option(help="The file of records to write.")],
    into: Annotated[Path, typer.Option(help="The folder into which the build of the plan is installed.")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """`torchbench build`, if the plan pins one, and `torchbench run` of one shard, its canaries first and last.

    Exit code 0: every test has its record, also if tests failed, which is for the judging job to say.
    """
    end_children_on_termination()
    forget_command_files()  # the build is not ours
    told: list[str] = []

    def tell(which: str, problems: list[str]) -> None:
        tell_of_canaries(which, problems)
        told.extend(f"{which}: {problem}" for problem in problems)

    with step(f"shard {shard}"):
        planned = read_plan(plan)
        request = request_of(planned, parse_shard(shard))
        python = interpreter(planned, load_config(config), into)
        if python is not None:
            request = dataclasses.replace(request, python=python)
        with TerminalReporter() as reporter:
            canaries = None if planned.canary is None else Canaries(planned.canary, out, reporter, tell)
            done = start_run(request, out, reporter, before=nothing_before if canaries is None else canaries.first)
            if canaries is not None:
                canaries.last(done.header)
        print_run(done)
        if done.missing:
            raise BenchmarkError(f"{out}: {len(done.missing)} of {len(done.header.plan)} tests have no record")
    if told:
        annotate("warning", f"shard {shard}: canaries", "\n".join(told[:MOST_NAMED]))
    if failed := failures(done):
        annotate("warning", f"shard {shard}: {len(failed)} tests failed", "\n".join(failed[:MOST_NAMED]))


def interpreter(plan: RunPlan, config: NightlyConfig, into: Path) -> Path | None:
    """The build to measure: the one of the plan, installed; else what the configuration names; None for this one."""
    return install(plan.build, into) if plan.build is not None else config.python


def failures(run: Run) -> list[str]:
    return [f"{record.test}: {record.status}, {record.reason}" for record in run.records if record.status.failed]


def conclude_command(
    shards: Annotated[Path, typer.Argument(help="The folder into which the shards were downloaded.")],
    plan: Annotated[Path, typer.Option(help="The plan of the run; what does not keep to it is left out.")],
    digest: Annotated[str, typer.Option(help="SHA-256 of the plan's file, as `plan` gave it.")],
    issues: IssuesOption,
    questions: Annotated[
        Path | None,
        typer.Option(help="The folder in which to leave what is to be measured again first; else the limits decide."),
    ] = None,
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """`torchbench conclude` of the shards that have come. Exit code 0: clean, or a regression; 2: broken.

    Outputs, if something is to be measured again: `nights`, which `decide` is to conclude, and `confirm`, the jobs of
    the matrix that answers. Nothing is judged or filed here then.
    """
    chosen = load_config(config)
    tracker = issue_file(issues, chosen)
    asking = None if questions is None or not chosen.confirm else _asking(chosen, questions)
    with step("conclude"), _summary_of(chosen) as summary:
        planned = _read_trusted_plan(plan, digest)
        files = sorted(shards.rglob("*.jsonl"))
        if not files:
            raise BotError(f"{shards}: no shard has come; see the measuring jobs")
        code = conclude_files(chosen, files, tracker, planned, asking)
    if asking is not None and asking.nights:
        names = [night.name for night in asking.nights if night.name]
        set_output("confirm", json.dumps([{"name": name} for name in names]))
        set_output("nights", json.dumps([night.model_dump() for night in asking.nights]))
        if code == EXIT_BROKEN:
            annotate("error", "nightly: not whole", _LEFT_OUT)
    else:
        _tell_conclusion(code, summary())
    raise typer.Exit(EXIT_BROKEN if code == EXIT_BROKEN else EXIT_CLEAN)


def _asking(config: NightlyConfig, folder: Path) -> "Asking":
    from bot.elsewhere.asking import Asking  # numpy and scipy take longer than most commands do

    return Asking(config, folder)


@contextmanager
def _summary_of(config: NightlyConfig) -> Iterator[Callable[[], dict[str, Any] | None]]:
    """Reads what a night has left in `work`, which is none if it came to none."""
    path = config.work / "nightly.json"
    path.unlink(missing_ok=True)  # what is there afterwards is tonight's
    yield lambda: json.loads(path.read_bytes()) if path.exists() else None


def confirm_command(
    question: Annotated[Path, typer.Argument(help="The file that `conclude` has left.")],
    into: Annotated[Path, typer.Option(help="The folder for builds, kept for other nights, and for what is measured.")],
    out: Annotated[Path, typer.Option(help="The file of answers to write.")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Measure again what a night asks for. A start after a kill goes on. Exit code 0: all is answered."""
    from bot.elsewhere.asking import answer_question  # numpy and scipy take longer than most commands do

    end_children_on_termination()
    forget_command_files()  # the builds are not ours
    with step("confirm"):
        answer_question(load_config(config), question, into, out)


def confirm_again_command(
    question: Annotated[Path, typer.Argument(help="The file that `conclude` has left.")],
    answers: Annotated[Path, typer.Option(help="The folder into which the answers of `confirm` were downloaded.")],
    into: Annotated[Path, typer.Option(help="The folder for builds, kept for other nights, and for what is measured.")],
    out: Annotated[Path, typer.Option(help="The file of answers to write.")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Ask what `confirm` has confirmed once more, on another machine of the class. A start after a kill goes on. Exit
    code 0: all is answered, or this is no other machine of the class, and nothing was measured."""
    from bot.elsewhere.asking import answer_again  # numpy and scipy take longer than most commands do

    end_children_on_termination()
    forget_command_files()  # the builds are not ours
    with step("confirm again"):
        refused = answer_again(load_config(config), question, answers, into, out)
    if refused is not None:
        annotate("warning", "no second runner", f"nothing was measured here, as this is the {_NO_SECOND[refused]}")


_NO_SECOND = {
    "same machine": "machine that has confirmed, or may be: give the label to other machines only",
    "other class": "wrong class of machine: give the label to machines of the nightly's class only",
}


def decide_command(
    answers: Annotated[Path, typer.Argument(help="The folder into which the answers were downloaded.")],
    nights: Annotated[str, typer.Option(help="The output `nights` of `conclude`.")],
    issues: IssuesOption,
    again: Annotated[
        Path | None, typer.Option(help="The folder of the answers of second runners, where there is to be one.")
    ] = None,
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Conclude nights by the answers that have come, also if none has. Exit code 0: clean, or a regression; 2: broken.

    What a night comes to is worked out here: of the answers only the numbers are believed.
    """
    from bot.elsewhere.asking import asked_nights
    from bot.elsewhere.deciding import confirms  # numpy and scipy take longer than most commands do

    chosen = load_config(config)
    tracker = issue_file(issues, chosen)
    with step("decide"), _summary_of(chosen) as summary:
        asked = asked_nights(nights)
        store, policy = open_store(chosen.store), load_policy(chosen.policy)
        with alone(chosen.work):
            how = confirms(chosen, store, policy, answers, asked, again)
            code = max(conclude_nights(chosen, store, policy, how, tracker))
    _tell_conclusion(code, summary())
    raise typer.Exit(EXIT_BROKEN if code == EXIT_BROKEN else EXIT_CLEAN)


def _read_trusted_plan(path: Path, digest: str) -> RunPlan:
    """The plan, if its file is what the planning job has left: a measuring job could put another in its place."""
    plan = read_plan(path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise BotError(f"{path}: is not the plan that the planning job has made; start the workflow anew")
    return plan


def _tell_conclusion(code: int, summary: dict[str, Any] | None) -> None:
    if summary is None:
        annotate("error", "nightly: broken", "no verdict was reached; see the log of this step")
        return
    report = Report.model_validate(summary["report"])
    add_summary(
        render_summary(
            report,
            summary["score"]["total"] if summary["score"] else None,
            summary["score_reference"],
            [one["title"] for one in summary["issues"]],
        )
    )
    if report.confirmation is not None and report.confirmation.not_measured:
        annotate("warning", "not measured again", report.confirmation.not_measured)
    if report.confirmation is not None and report.confirmation.not_asked_elsewhere:
        annotate("warning", "not asked on a second runner", report.confirmation.not_asked_elsewhere)
    if report.confirmation is not None and report.confirmation.not_closed:
        annotate("warning", "no alert is closed or cleared", report.confirmation.not_closed)
    canaries = summary["canaries"]
    if canaries is not None and (canaries["moved"] or canaries["failing"]):
        annotate("warning", "canaries", canaries["sentence"])
    if code == EXIT_BROKEN and report.exit_code != EXIT_BROKEN:  # of another night, or of a shard
        annotate("error", "nightly: not whole", _LEFT_OUT)
        code = report.exit_code
    if code == EXIT_CLEAN:
        return
    annotate("warning" if code == EXIT_REGRESSION else "error", f"nightly: {report.verdict}", report.reason)


def watchdog_command(issues: IssuesOption, config: ConfigOption = Path("nightly.yaml")) -> None:
    """`torchbench watchdog`, its issues left in a file. Exit code 0, also if something is missing."""
    with step("watchdog"):
        watched = watch(load_config(config), IssueFile(issues))
    for one in watched:
        add_summary(f"- {inline_code(f'{one.suite} on {one.machine_class}')}: {inline_code(one.problem or 'well')}\n")
        if one.problem:
            annotate("warning", "watchdog", f"{one.suite} on {one.machine_class}: {one.problem}")
