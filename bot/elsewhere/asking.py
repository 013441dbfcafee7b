"""Confirming on another machine than the one that may read the store: the question of a night is left by one job
(`Asking`), answered by a machine with a GPU and no rights (`answer_question`), perhaps asked again on a second one
(`answer_again`), and the night is concluded by a job that believes of the answers only the numbers
(`confirm_by_answers`). docs/actions.md describes the jobs.
"""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from bot.conclusion import judge_night
from bot.config import NightlyConfig
from bot.confirming.bench import ASKS, MachineBench, OtherClass
from bot.confirming.builds_of_nights import BuildsOfNights
from bot.confirming.confirmation import Looked, confirm_looked, look_at_night, outcome_in, rules_of, store_outcome
from bot.elsewhere.answers import AnswersRefused, RecordedBench, RecordingBench, Refusal, answers_in
from bot.elsewhere.both_runners import BothRunners
from bot.elsewhere.question import Question, digest_of, question_of, read_question, write_question
from bot.errors import BotError
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
        confirm_looked(_with_a_state_of_its_own(looked), _NoBench(), rules)
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
    with _bench_for(config, asked, asked.run, into, out) as bench:
        _run(config, asked, bench)
        bench.write(out, asked.digest, host_name())


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


def confirms(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    answers: Path,
    nights: Sequence[AskedNight],
    again: Path | None = None,
) -> dict[str, Callable[[NightSummary, Report, str], NightOutcome | None]]:
    """What confirms each night, by its prefix: the answers to its question, if it has asked one. `again`: the folder of
    those of a second machine, where there is to be one."""
    return {
        night.key: partial(confirm_by_answers, config, store, policy, answers, again, night.name)
        if night.name
        else partial(confirm_without, config, store, policy)
        for night in nights
    }


def confirm_by_answers(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    answers: Path,
    again: Path | None,
    name: str,
    tonight: NightSummary,
    report: Report,
    canary: str,
) -> NightOutcome | None:
    """Confirm a night by the answers of this name below a folder: what it comes to is worked out here, and stored.

    Where they are missing, or are none to its question, nothing is confirmed, and what waits goes on waiting. Where
    those of the second machine are, the night comes to what it comes to with one.
    """

    def by_answers(looked: Looked, rules: Rules) -> Looked:
        path, digest, why = answers_in(answers, name), digest_of(looked), ""
        if again is not None:
            try:
                return _by_both(looked, rules, RecordedBench(path, digest), again, name)
            except AnswersRefused as problem:  # of either machine: those of the first are looked at again
                why = str(problem)
        alone = _with_a_state_of_its_own(looked)
        first = RecordedBench(path, digest)
        confirm_looked(alone, first, rules)
        first.require_all_asked()
        if why and alone.state.outcome is not None:
            alone.state.outcome = alone.state.outcome.model_copy(update={"not_asked_elsewhere": why})
        return alone

    return _confirm(config, store, policy, by_answers, tonight, report, canary)


def _by_both(looked: Looked, rules: Rules, first: RecordedBench, again: Path, name: str) -> Looked:
    """The night by the answers of two machines; those of the second are read only if it is asked anything."""
    digest, found = digest_of(looked), _with_a_state_of_its_own(looked)

    def answers_of_the_second() -> RecordedBench:
        path = answers_in(again, f"{name}{AGAIN}", artifact=f"again-{name}", job="the second confirming job")
        second = RecordedBench(path, digest, first.digest)
        if first.host in ("", second.host):
            raise AnswersRefused(f"{path.name}: is of the machine that had confirmed, or may be")
        seconds.append(second)
        return second

    seconds: list[RecordedBench] = []
    confirm_looked(found, BothRunners(first, answers_of_the_second), rules)
    for one in (first, *seconds):
        one.require_all_asked()
    return found


def _with_a_state_of_its_own(looked: Looked) -> Looked:
    return dataclasses.replace(looked, state=looked.state.model_copy(deep=True))


def confirm_without(
    config: NightlyConfig, store: Store, policy: Policy, tonight: NightSummary, report: Report, canary: str
) -> NightOutcome | None:
    """Confirm a night that has nothing to measure, or was confirmed before."""

    def by_nothing(looked: Looked, rules: Rules) -> Looked:
        confirm_looked(looked, _NoBench(), rules)
        return looked

    return _confirm(config, store, policy, by_nothing, tonight, report, canary)


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
    come_to: Callable[[Looked, Rules], Looked],  # the same, its state what the night comes to
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
        looked = come_to(looked, rules_of(config.file, policy))
    except AnswersRefused as problem:
        return not_measured(str(problem))
    except _Asked:
        return not_measured("it has changed since it was said that there is nothing to measure")
    store_outcome(store, looked)
    return looked.state.outcome
