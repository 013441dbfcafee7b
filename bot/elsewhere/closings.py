"""Alerts that are to be closed, where another machine measures: which they are is worked out before the night is
confirmed, as the question is left then, and what pairs say of them from the answers."""

from collections.abc import Callable
from datetime import datetime

from baselines.confirming.closing import AskedClosing, ask_closings
from baselines.confirming.margins import with_margins
from baselines.confirming.rules import Rules
from baselines.confirming.state import Closing, NightOutcome
from baselines.report import Report
from baselines.store import Store
from bot.confirming.closing import closings_of, with_closings
from bot.confirming.confirmation import Looked
from bot.confirming.report import with_confirmation
from bot.elsewhere.answers import AnswersRefused, RecordedBench
from bot.elsewhere.question import closings_digest
from bot.elsewhere.without_bench import NoBench, ask_something
from bot.github.alert_store import read_alerts

CLOSINGS = "-closings"  # how the name of the answers about alerts ends


def closings_elsewhere(store: Store, looked: Looked, report: Report, now: datetime) -> tuple[AskedClosing, ...]:
    """The alerts that the night would close if it confirms nothing, and what is asked of each. One that it then finds
    slower is asked in vain, and stays open whatever pairs say."""
    tonight = looked.tonight
    alerts = read_alerts(store, tonight.suite, tonight.machine_class)
    unconfirmed = with_confirmation(report, NightOutcome(night=tonight.started))
    return closings_of(alerts, unconfirmed, looked.history, now)


def close_by_answers(
    looked: Looked, closings: tuple[AskedClosing, ...], answers: Callable[[str], RecordedBench]
) -> None:
    """Let a night that is confirmed, but not stored yet, say by answers which alerts may be closed. `answers` gives
    those to a question, by its digest; they are not read where there is nothing to measure. Where they are none,
    nothing is closed, and the outcome says why."""
    state, head = looked.state, looked.tonight.build.id
    if state.outcome is None:
        return
    rules, told, spent, why = with_margins(Rules(), state), (), 0, ""
    if not ask_something(closings, head):
        told, spent = ask_closings(closings, head, NoBench(), rules)
    else:
        try:
            told, spent = _asked(closings, head, answers(closings_digest(looked, closings)), rules)
        except AnswersRefused as problem:
            why = str(problem)
    state.outcome = with_closings(state.outcome, told, spent).model_copy(update={"not_closed": why})
    state.bucket -= spent


def _asked(
    closings: tuple[AskedClosing, ...], head: str, bench: RecordedBench, rules: Rules
) -> tuple[tuple[Closing, ...], int]:
    found = ask_closings(closings, head, bench, rules)
    bench.require_all_asked()
    return found
