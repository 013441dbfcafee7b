"""The steps of `.github/workflows/bisect-round.yml`: a round of a bisection, each job on a machine of its own."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from baselines.store import open_store
from bot.config import ConfigOption, load_config
from bot.errors import BotError
from bot.github.issue_file import IssueFile
from bot.github.workflow_log import add_summary, annotate, forget_command_files, set_output, step
from torchbenchmark.foreign_text import inline_code

MOST_AT_ONCE = 16  # commits that a round builds
QuestionArgument = Annotated[Path, typer.Argument(help="The file that `bisect-ask` has left.")]


def register(workflow: typer.Typer) -> None:
    for name, command in (
        ("bisect-ask", ask_command),
        ("bisect-build", build_command),
        ("bisect-measure", measure_command),
        ("bisect-decide", decide_command),
    ):
        workflow.command(name)(command)


def ask_command(
    repo: Annotated[str, typer.Option(help="The repository of the subject: an address or a path.")],
    out: Annotated[Path, typer.Option(help="The file of the question to write.")],
    signal: Annotated[str, typer.Option(help="The alert to bisect; empty: the first without a verdict.")] = "",
    good: Annotated[
        str, typer.Option(help="A commit, branch or tag before the change: of the alert, or with tests of none.")
    ] = "",
    bad: Annotated[str, typer.Option(help="And one after it.")] = "",
    tests: Annotated[str, typer.Option(help="And the tests, between blanks.")] = "",
    build: Annotated[str, typer.Option(help="Shell line that builds a commit; empty: the configuration's.")] = "",
    builds: Annotated[int, typer.Option(min=2, max=MOST_AT_ONCE, help="Commits to build at once.")] = 6,
    there: Annotated[str, typer.Option(help="Commits that rounds before have built in this run, between blanks.")] = "",
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """What the next round is to build and measure. Outputs: `digest` of the question (empty: there is none), `builds`,
    the jobs of the matrix, `measure` if there is anything to, `there`, the commits that are built after it, and
    `building` and `measuring`, the labels of the runners."""
    from bot.elsewhere.bisect_builds import name_of  # numpy and scipy take longer than most commands do
    from bot.elsewhere.bisect_question import write_bisect_question
    from bot.elsewhere.bisect_rounds import Named, Repository, ask

    with step("bisect: ask"):
        if not repo:
            raise BotError("--repo: is empty; set the variable TORCHBENCH_BISECT_REPO of the repository, or name one")
        named = Named(good, bad, tuple(tests.split())) if good or bad or tests else None
        if named is not None and (not (good and bad) or bool(signal) == bool(named.tests)):
            raise BotError("name an alert, both ends and an alert, or both ends and tests")
        already = [one for one in there.split() if re.fullmatch(r"[0-9a-f]{40}", one)]
        chosen = load_config(config)
        store = open_store(chosen.store)
        question = ask(chosen, store, Repository(repo), signal, named, build or None, builds, already)
    set_output("building", json.dumps(chosen.runners.building))
    set_output("measuring", json.dumps(chosen.runners.measuring))
    if question is None:
        annotate("notice", "bisect", "there is no open alert without a verdict that could be bisected")
        set_output("digest", "")
        return
    set_output("digest", write_bisect_question(question, out))
    jobs = [{"commit": commit, "name": name_of(commit)} for commit in question.builds]
    set_output("builds", json.dumps(jobs) if jobs else "")
    set_output("measure", "" if question.is_over else "true")
    set_output("there", " ".join(dict.fromkeys([*already, *question.builds])))


def build_command(
    question: QuestionArgument,
    commit: Annotated[str, typer.Option(help="Which of its commits.")],
    out: Annotated[Path, typer.Option(help="The folder in which wheels and outcome are left.")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Build a commit. Exit code 0, also if it does not build, which is told."""
    from bot.elsewhere.bisect_builds import build_commit
    from bot.elsewhere.bisect_question import read_bisect_question
    from torchbenchmark.cli import end_children_on_termination

    end_children_on_termination()
    forget_command_files()  # the build is not ours
    with step(f"bisect: build {commit[:12]}"):
        chosen = load_config(config)
        timeout_s = chosen.builds.git.timeout_s if chosen.bisect is None else chosen.bisect.build_timeout_s
        made = build_commit(chosen, read_bisect_question(question), commit, timeout_s, out)
    if not made.ok:
        annotate("notice", f"{made.commit[:12]} does not build", made.reason)


def measure_command(
    question: QuestionArgument,
    made: Annotated[Path, typer.Option(help="The folder into which the builds were downloaded.")],
    into: Annotated[Path, typer.Option(help="The folder for what is measured: a start after a kill goes on.")],
    out: Annotated[Path, typer.Option(help="The file of the answer to write.")],
    minutes: Annotated[float, typer.Option(min=0, help="After that nothing new is begun.")] = 180.0,
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Measure the builds that have come, as far as the search can go on with them."""
    from bot.elsewhere.bisect_rounds import measure
    from torchbenchmark.cli import end_children_on_termination

    end_children_on_termination()
    forget_command_files()  # the builds are not ours
    with step("bisect: measure"):
        why = measure(load_config(config), question, made, into, out, minutes)
    annotate("notice", "bisect", why)


def decide_command(
    question: QuestionArgument,
    digest: Annotated[str, typer.Option(help="The output of `bisect-ask`.")],
    answers: Annotated[Path, typer.Option(help="The folder into which the answer was downloaded.")],
    issues: Annotated[Path, typer.Option(help="The file in which issues are left, for `torchbench file`.")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Store what the round came to. Outputs: `again`, if the search has not ended, and `verdict`, if an alert has one
    now. Exit code 0, also without a verdict."""
    from bot.bisection.report import markdown
    from bot.elsewhere.bisect_rounds import answer_in, decide

    chosen, tracker = load_config(config), IssueFile(issues)
    with step("bisect: decide"):
        decided = decide(chosen, open_store(chosen.store), question, digest, answer_in(answers), tracker)
    if decided.problem:
        annotate("warning", "bisect: nothing was added", decided.problem)
    set_output("again", "" if decided.found is not None or decided.problem else "true")
    set_output("verdict", "true" if decided.alert is not None else "")
    if decided.found is not None:
        add_summary(markdown(decided.found))
    else:
        add_summary(f"Bisecting goes on: {inline_code(decided.problem or 'the next round')}\n")
