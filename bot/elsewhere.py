"""Confirming on another machine than the one that may read the store: the question of a night is left by one job
(`Asking`), answered by a machine with a GPU and no rights (`answer_question`), and the night is concluded by a job that
believes of the answers only the numbers (`confirm_by_answers`). docs/actions.md describes the jobs.
"""

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from baselines.confirming.bench import Bench
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.state import NightOutcome
from baselines.confirming.stored_state import read_state
from baselines.policy import Policy, load_policy
from baselines.report import Report
from baselines.runs import parse_run_prefix
from baselines.series import NightSummary
from baselines.store import Store, open_store
from baselines.store.interface import check_part
from baselines.stored_builds import store_build
from bot.answers import AnswersRefused, RecordedBench, RecordingBench, answers_in
from bot.bench import ASKS, MachineBench
from bot.builds_of_nights import BuildsOfNights
from bot.conclusion import judge_night
from bot.config import NightlyConfig
from bot.confirmation import Looked, confirm_looked, look_at_night, outcome_in, rules_of, store_outcome
from bot.errors import BotError
from bot.nightly import alone
from bot.question import digest_of, question_of, read_question, write_question
from bot.run_request import run_request
from torchbenchmark.errors import SentinelError
from torchbenchmark.terminal import console

QUESTION = ".json.gz"  # how the file of a question ends


class AskedNight(BaseModel):
    """A stored night that is to be concluded, once its question is answered."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    name: Annotated[str, Field(pattern=r"^(confirm-[0-9]{1,3})?$")]  # of the question; empty: it has none


class _Asked(Exception):
    """Something would be measured."""


class _NoBench:
    """A bench that measures nothing, and says so at the first ask."""

    runners = 1

    def _ask(self, *args: object, **kwargs: object) -> None:
        raise _Asked

    has = pairs = again = one_by_one = _ask  # type: ignore[assignment]


def asks_something(looked: Looked, rules: Rules) -> bool:
    """Whether the night has something to measure. What it leaves behind stays as it was."""
    try:
        confirm_looked(dataclasses.replace(looked, state=looked.state.model_copy(deep=True)), _NoBench(), rules)
    except _Asked:
        return True
    return False


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
                judged = judge_night(self.config, store, policy, prefix)
                asks = leave_question(self.config, store, policy, judged.tonight, judged.report, judged.canary, path)
            except SentinelError as problem:  # concluding it meets the same, and says so
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
    if not isinstance(looked, Looked) or not asks_something(looked, rules_of(config.file, policy)):
        return False
    write_question(question_of(store, looked), path)
    return True


def answer_question(config: NightlyConfig, question: Path, into: Path, out: Path) -> None:
    """Measure what a question asks for on this machine, and write the answers to `out`.

    `into` keeps the builds that are installed for it, for other nights too, and what was measured until the question is
    answered: a start after a kill goes on. What was measured is copied beside the answers, for people to look at.
    """
    asked = read_question(question)
    folder = into / check_part(asked.machine_class, "class")
    with alone(folder):
        asks = folder / ASKS / check_part(asked.run, "run")
        for left in asks.parent.glob("*"):  # of nights that nobody waits for any more
            if left != asks:
                shutil.rmtree(left, ignore_errors=True)
        shutil.rmtree(folder / "pins", ignore_errors=True)
        store = open_store(str(folder / "pins"))
        for one in asked.pins:
            store_build(store, one.build, one.pin, one.distributions)
        builds = BuildsOfNights(store, folder / "builds", config.subject, asked.measured)
        bench = RecordingBench(MachineBench(run_request(config), builds, asks, asked.machine_class))
        try:
            rules = rules_of(config.file, load_policy(config.policy))
            run_night(asked.seen(), asked.state, bench, rules, asked.candidates(), asked.exact)
            bench.write(out, asked.digest)
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


def confirms(
    config: NightlyConfig, store: Store, policy: Policy, answers: Path, nights: Sequence[AskedNight]
) -> dict[str, Callable[[NightSummary, Report, str], NightOutcome | None]]:
    """What confirms each night, by its prefix: the answers to its question, if it has asked one."""
    return {
        night.key: partial(confirm_by_answers, config, store, policy, answers, night.name)
        if night.name
        else partial(confirm_without, config, store, policy)
        for night in nights
    }


def confirm_by_answers(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    answers: Path,
    name: str,
    tonight: NightSummary,
    report: Report,
    canary: str,
) -> NightOutcome | None:
    """Confirm a night by the answers of this name below a folder: what it comes to is worked out here, and stored.

    Where they are missing, or are none to its question, nothing is confirmed, and what waits goes on waiting.
    """

    def recorded(looked: Looked) -> RecordedBench:
        return RecordedBench(answers_in(answers, name), digest_of(looked))

    return _confirm(config, store, policy, recorded, tonight, report, canary)


def confirm_without(
    config: NightlyConfig, store: Store, policy: Policy, tonight: NightSummary, report: Report, canary: str
) -> NightOutcome | None:
    """Confirm a night that has nothing to measure, or was confirmed before."""
    return _confirm(config, store, policy, lambda looked: None, tonight, report, canary)


def confirmed_already(store: Store, tonight: NightSummary, report: Report, canary: str) -> NightOutcome | None:
    """Where nothing can be measured: what a night came to that was confirmed before. One of a class whose nights are
    confirmed, but not this one, is left to `torchbench confirm`; None of a class that never was."""
    state, _ = read_state(store, tonight.suite, tonight.machine_class)
    if state.last_night is None:
        return None
    known = outcome_in(state, tonight)
    return known or NightOutcome(night=tonight.started, not_measured="that is for `torchbench confirm`")


def _confirm(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    bench_for: Callable[[Looked], RecordedBench | None],
    tonight: NightSummary,
    report: Report,
    canary: str,
) -> NightOutcome | None:
    looked = look_at_night(store, tonight, report, policy, canary)
    if not isinstance(looked, Looked):
        return looked
    waiting = tuple(name for name, one in looked.state.series.items() if one.pending is not None)

    def not_measured(why: str) -> NightOutcome:
        return NightOutcome(night=tonight.started, waiting=waiting, not_measured=why)

    try:
        recorded = bench_for(looked)
        bench: Bench = _NoBench() if recorded is None else recorded
        confirm_looked(looked, bench, rules_of(config.file, policy))
        if recorded is not None:
            recorded.require_all_asked()
    except AnswersRefused as problem:
        return not_measured(str(problem))
    except _Asked:
        return not_measured("it has changed since it was said that there is nothing to measure")
    store_outcome(store, looked)
    return looked.state.outcome
