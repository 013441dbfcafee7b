"""What a night comes to that another machine has measured again: worked out here, from the store and from answers of
which only the numbers are believed, and stored."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from baselines.confirming.rules import Rules
from baselines.confirming.state import NightOutcome
from baselines.confirming.stored_state import read_state
from baselines.policy import Policy
from baselines.report import Report
from baselines.series import NightSummary
from baselines.store import Store
from bot.config import NightlyConfig
from bot.confirming.confirmation import Looked, confirm_looked, look_at_night, outcome_in, rules_of, store_outcome
from bot.elsewhere.answers import AnswersRefused, RecordedBench, answers_in
from bot.elsewhere.asking import AGAIN, AskedNight
from bot.elsewhere.both_runners import BothRunners
from bot.elsewhere.closings import CLOSINGS, close_by_answers, closings_elsewhere
from bot.elsewhere.question import digest_of
from bot.elsewhere.without_bench import Asked, NoBench, asks_something, with_a_state_of_its_own


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
    those of the second machine are, the night comes to what it comes to with one. Where those about alerts are, none is
    closed.
    """

    def by_answers(looked: Looked, rules: Rules) -> Looked:
        if not asks_something(looked, rules):  # all that was asked is whether alerts may be closed
            return _by_nothing(looked, rules)
        path, digest, why = answers_in(answers, name), digest_of(looked), ""
        if again is not None:
            try:
                return _by_both(looked, rules, RecordedBench(path, digest), again, name)
            except AnswersRefused as problem:  # of either machine: those of the first are looked at again
                why = str(problem)
        alone = with_a_state_of_its_own(looked)
        first = RecordedBench(path, digest)
        confirm_looked(alone, first, rules)
        first.require_all_asked()
        if why and alone.state.outcome is not None:
            alone.state.outcome = alone.state.outcome.model_copy(update={"not_asked_elsewhere": why})
        return alone

    def about_alerts(digest: str) -> RecordedBench:
        job = "the job that asks pairs about alerts"
        return RecordedBench(answers_in(answers, f"{name}{CLOSINGS}", artifact=f"answers-{name}", job=job), digest)

    return _confirm(config, store, policy, by_answers, about_alerts, tonight, report, canary)


def _by_both(looked: Looked, rules: Rules, first: RecordedBench, again: Path, name: str) -> Looked:
    """The night by the answers of two machines; those of the second are read only if it is asked anything."""
    digest, found = digest_of(looked), with_a_state_of_its_own(looked)

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


def _by_nothing(looked: Looked, rules: Rules) -> Looked:
    confirm_looked(looked, NoBench(), rules)
    return looked


def confirm_without(
    config: NightlyConfig, store: Store, policy: Policy, tonight: NightSummary, report: Report, canary: str
) -> NightOutcome | None:
    """Confirm a night that has nothing to measure, or was confirmed before."""

    def about_alerts(digest: str) -> RecordedBench:
        raise AnswersRefused(_CHANGED)

    return _confirm(config, store, policy, _by_nothing, about_alerts, tonight, report, canary)


def confirmed_already(store: Store, tonight: NightSummary, report: Report, canary: str) -> NightOutcome | None:
    """Where nothing can be measured: what a night came to that was confirmed before. One of a class whose nights are
    confirmed, but not this one, is left to `torchbench confirm`; None of a class that never was."""
    state, _ = read_state(store, tonight.suite, tonight.machine_class)
    if state.last_night is None:
        return None
    known = outcome_in(state, tonight)
    return known or NightOutcome(night=tonight.started, not_measured="that is for `torchbench confirm`")


_CHANGED = "it has changed since it was said that there is nothing to measure"


def _confirm(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    come_to: Callable[[Looked, Rules], Looked],  # the same, its state what the night comes to
    about_alerts: Callable[[str], RecordedBench],
    tonight: NightSummary,
    report: Report,
    canary: str,
) -> NightOutcome | None:
    """What the night comes to; it always says of which alerts pairs were asked, so that none is closed without."""
    looked = look_at_night(store, tonight, report, policy, canary)
    if looked is None:
        return None
    if not isinstance(looked, Looked):
        return looked if looked.closings is not None else looked.model_copy(update={"closings": ()})
    closings = closings_elsewhere(store, looked, report, datetime.now(UTC))
    waiting = tuple(name for name, one in looked.state.series.items() if one.pending is not None)

    def not_measured(why: str) -> NightOutcome:
        untold = why if closings else ""
        return NightOutcome(night=tonight.started, waiting=waiting, not_measured=why, closings=(), not_closed=untold)

    try:
        looked = come_to(looked, rules_of(config.file, policy))
    except AnswersRefused as problem:
        return not_measured(str(problem))
    except Asked:
        return not_measured(_CHANGED)
    close_by_answers(looked, closings, about_alerts)
    store_outcome(store, looked)
    return looked.state.outcome
