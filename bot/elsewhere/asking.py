"""Confirming on another machine than the one that may read the store: the question of a night is left by one job
(`Asking`), answered by a machine with a GPU and no rights (`answer_question`), perhaps asked again on a second one
(`answer_again`), and the night is concluded by a job that believes of the answers only the numbers (deciding.py).
docs/actions.md describes the jobs.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from baselines.confirming.bench import Bench
from baselines.confirming.closing import ask_closings
from baselines.confirming.margins import with_margins
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.policy import Policy, load_policy
from baselines.report import Report
from baselines.runs import load_run, parse_run_prefix
from baselines.series import NightSummary
from baselines.store import Store, open_store
from baselines.store.interface import check_part
from baselines.stored_builds import store_build
from bot.conclusion import conclude_left, judge_night
from bot.config import NightlyConfig
from bot.confirming.bench import ASKS, MachineBench, OtherClass
from bot.confirming.builds_of_nights import BuildsOfNights
from bot.confirming.confirmation import Looked, look_at_night, rules_of
from bot.elsewhere.answers import RecordedBench, RecordingBench, Refusal, answers_in
from bot.elsewhere.both_runners import BothRunners
from bot.elsewhere.closings import CLOSINGS, closings_elsewhere
from bot.elsewhere.question import Question, question_of, read_question, write_question
from bot.elsewhere.without_bench import ask_something, asks_something
from bot.errors import BotError
from bot.github.issue import Filed, Issue
from bot.nightly import alone
from bot.run_request import run_request
from torchbenchmark.environment import host_name
from torchbenchmark.errors import SentinelError
from torchbenchmark.terminal import console

QUESTION = ".json.gz"  # how the file of a question ends
AGAIN = "-again"  # how the name of the answers of a second machine ends


class AskedNight(BaseModel):
    """A stored night that is to be concluded, once its question is answered."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    name: Annotated[str, Field(pattern=r"^(confirm-[0-9]{1,3})?$")]  # of the question; empty: it has none


class _FiledLater:
    """A tracker where nothing is filed: who concludes tonight files every alert that is open, or was closed lately."""

    def put(self, issue: Issue) -> Filed | None:
        return None


class Asking:
    """Leaves the questions of nights in a folder, and says which nights they are of. A `Deferring` of bot.sharded."""

    def __init__(self, config: NightlyConfig, folder: Path) -> None:
        self.config = config
        self.folder = folder
        self.nights: list[AskedNight] = []  # those that were taken; empty if there is nothing to measure

    def __call__(self, store: Store, policy: Policy, prefixes: Sequence[str]) -> bool:
        found = []
        for number, prefix in enumerate(prefixes, start=1):
            name = f"confirm-{number}"
            path = self.folder / f"{name}{QUESTION}"
            try:
                # First, as `decide` does: with its alerts, what is suspected tonight and asked for is another thing.
                conclude_left(self.config, store, policy, load_run(store, prefix), _FiledLater())
                judged = judge_night(self.config, store, policy, prefix)
                asks = leave_question(self.config, store, policy, judged.tonight, judged.report, judged.canary, path)
            except Exception as problem:  # of whatever kind: concluding it meets the same, and says so
                console.print(f"{prefix}: nothing is asked: {problem}", markup=False, style="yellow")
                asks = False
            found.append(AskedNight(key=prefix, name=name if asks else ""))
        if any(night.name for night in found):
            self.nights = found
        return bool(self.nights)


def leave_question(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    tonight: NightSummary,
    report: Report,
    canary: str,
    path: Path,
) -> bool:
    """Write the question of a night to a file; False, and no file, if it has nothing to measure."""
    if report.verdict == "broken":
        return False
    looked = look_at_night(store, tonight, report, policy, canary)
    if not isinstance(looked, Looked):
        return False
    closings = closings_elsewhere(store, looked, report, datetime.now(UTC))
    if not asks_something(looked, rules_of(config.file, policy)) and not ask_something(closings, tonight.build.id):
        return False
    write_question(question_of(store, looked, closings), path)
    return True


def answer_question(config: NightlyConfig, question: Path, into: Path, out: Path) -> None:
    """Measure what a question asks for on this machine, and write the answers to `out`.

    `into` keeps the builds that are installed for it, for other nights too, and what was measured until the question is
    answered: a start after a kill goes on. What was measured is copied beside the answers, for people to look at. What
    is asked of alerts that may be closed is answered last, in a file of its own beside `out`: what goes wrong there is
    told, and leaves them open.
    """
    asked = read_question(question)
    beside = out.with_name(f"{out.stem}{CLOSINGS}{out.suffix}")
    beside.unlink(missing_ok=True)
    with _bench_for(config, asked, asked.run, into, out) as bench:
        _run(config, asked, bench)
        bench.write(out, asked.digest, host_name())
        if asked.closings and asked.closings_digest is not None:
            closing = RecordingBench(bench.bench)  # whose asks go on from those of the night
            try:
                ask_closings(asked.closings, asked.builds[-1], closing, with_margins(Rules(), asked.state))
                closing.write(beside, asked.closings_digest, host_name())
            except SentinelError as problem:
                console.print(f"no alert can be closed or cleared: {problem}", markup=False, style="yellow")


def answer_again(config: NightlyConfig, question: Path, answers: Path, into: Path, out: Path) -> Refusal | None:
    """Go through a night by the answers below a folder, measure on this machine what a second one is asked, and write
    that alone to `out`. Returns why it is no second machine, in which case nothing was measured and `out` says so.

    `into` is as for `answer_question`. Raises AnswersRefused if the first answers are none.
    """
    asked = read_question(question)
    first = RecordedBench(answers_in(answers, question.name.removesuffix(QUESTION)), asked.digest)
    here = host_name()
    # Numbered by the answers: those of a confirming job that was started again may ask for something else.
    with _bench_for(config, asked, f"{asked.run}{AGAIN}-{first.digest[:16]}", into, out) as second:
        refused: Refusal | None = "same machine" if first.host in ("", here) else None
        try:
            if refused is None:
                _run(config, asked, BothRunners(first, lambda: second))
                first.require_all_asked()
        except OtherClass as problem:
            console.print(str(problem), markup=False, style="yellow")
            refused = "other class"
        if refused is None:
            second.write(out, asked.digest, here, first.digest)
        else:
            second.write_refused(out, asked.digest, here, first.digest, refused)
    return refused


def _run(config: NightlyConfig, asked: Question, bench: Bench) -> None:
    rules = rules_of(config.file, load_policy(config.policy))
    run_night(asked.seen(), asked.state, bench, rules, asked.candidates(), asked.exact)


@contextmanager
def _bench_for(config: NightlyConfig, asked: Question, name: str, into: Path, out: Path) -> Iterator[RecordingBench]:
    """The bench of this machine for a question; what it measures lies in a folder of this name until it is answered."""
    folder = into / check_part(asked.machine_class, "class")
    with alone(folder):
        asks = folder / ASKS / check_part(name, "run")
        for left in asks.parent.glob("*"):  # of nights that nobody waits for any more
            if left != asks:
                shutil.rmtree(left, ignore_errors=True)
        shutil.rmtree(folder / "pins", ignore_errors=True)
        store = open_store(str(folder / "pins"))
        for one in asked.pins:
            store_build(store, one.build, one.pin, one.distributions)
        builds = BuildsOfNights(store, folder / "builds", config.subject, asked.measured)
        try:
            yield RecordingBench(MachineBench(run_request(config), builds, asks, asked.machine_class))
        finally:
            _copy_for_people(asks, out.with_name(f"{out.stem}-asks"))
        shutil.rmtree(asks, ignore_errors=True)


def _copy_for_people(asks: Path, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for path in sorted(asks.glob("[0-9]*.json*")) if asks.exists() else ():
        if path.is_file():
            shutil.copyfile(path, to / path.name)


def asked_nights(text: str) -> list[AskedNight]:
    """The nights of the output of a step."""
    try:
        found = TypeAdapter(list[AskedNight]).validate_json(text)
        for night in found:
            parse_run_prefix(night.key)
    except (ValidationError, SentinelError) as error:
        raise BotError(f"nights: {error}; expected what `torchbench workflow conclude` gave as its output") from error
    if not found:
        raise BotError("nights: there is none to conclude")
    return found
