"""Is the change of an alert gone? That is asked before it is closed, and when a night's figures leave it in doubt: the
build from before it is measured against tonight's in pairs, on what they are measured with when something is confirmed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from baselines.confirming.bench import Bench
from baselines.confirming.closing import AskedClosing, Question, ask_closings
from baselines.confirming.margins import with_margins
from baselines.confirming.rules import Rules
from baselines.confirming.state import Closing, NightOutcome
from baselines.confirming.stored_state import read_state, write_state
from baselines.history import read_nights
from baselines.night_evidence import TOTAL
from baselines.report import Report
from baselines.screening import WINDOW
from baselines.series import NightSummary
from baselines.store import Store
from bot.github.alert import Alert
from bot.github.alert_life import is_late, predates_of
from bot.github.alerts import closing_tonight
from bot.github.night_findings import by_figures, is_doubtful, signals_of

MOST_TESTS = 6  # of an alert, those that changed most: its other tests were good for three nights too

BenchOf = Callable[[Sequence[NightSummary]], Bench]


def confirm_closings(
    store: Store,
    tonight: NightSummary,
    report: Report,
    alerts: Collection[Alert],
    bench: BenchOf,
    now: datetime,
    rules: Rules | None = None,
) -> Report:
    """The report with what pairs say of the alerts that it would close or doubts, stored with the confirmed night.

    A night of which that is stored already is asked nothing again. `bench` makes one out of the nights before.
    """
    outcome = report.confirmation
    if outcome is None or outcome.closings is not None:
        return report
    nights = read_nights(store, tonight.suite, tonight.machine_class, WINDOW, before=tonight.started)
    closings = closings_of(alerts, report, nights, now)
    if not closings:
        return report.model_copy(update={"confirmation": with_closings(outcome, (), 0)})
    state, version = read_state(store, tonight.suite, tonight.machine_class)
    rules = with_margins(rules or Rules(), state)
    found, spent = ask_closings(closings, tonight.build.id, bench(nights), rules)
    after = with_closings(outcome, found, spent)
    if state.outcome is not None and state.outcome.night == tonight.started:
        state.outcome = after
        state.bucket -= spent
        write_state(store, tonight.suite, tonight.machine_class, state, version)
    return report.model_copy(update={"confirmation": after})


def with_closings(outcome: NightOutcome, closings: tuple[Closing, ...], pairs: int) -> NightOutcome:
    """What the night came to, with what so many pairs said of the alerts that it would close."""
    return outcome.model_copy(update={"closings": closings, "processes": outcome.processes + 2 * pairs})


def closings_of(
    alerts: Collection[Alert], report: Report, nights: Collection[NightSummary], now: datetime
) -> tuple[AskedClosing, ...]:
    """The alerts that the night would close as recovered, those that it leaves in doubt, and what is asked of each.
    `nights`: those before it, whose builds may be asked for."""
    builds = {night.started: night.build.id for night in nights}
    closing = [
        AskedClosing(alert.key, tuple(_questions(alert, report, builds)[:MOST_TESTS]))
        for alert in closing_tonight(alerts, report, now=now)
    ]
    doubted = [
        AskedClosing(alert.key, asked, doubted=True)
        for alert in alerts
        if not is_late(alert, report, now) and (asked := _doubts(alert, report, builds))
    ]
    opened = {alert.key: alert.opened for alert in alerts}
    return tuple(sorted([*closing, *doubted], key=lambda one: (opened[one.alert], one.alert)))


def _doubts(alert: Alert, report: Report, builds: Mapping[datetime, str]) -> tuple[Question, ...]:
    """Of an open alert the tests that tonight calls slower, and not by what was confirmed: the question is whether they
    are slower by more than the limit. Of a build from before the change there is no question, whatever it measured."""
    if not alert.is_open or alert.kind != "regression":
        return ()
    rows = {row.test: row for row in report.rows if by_figures(alert, row) == "there"}
    known, outdated = signals_of(report), predates_of(alert, report)
    itself, others = [], []
    for one in _questions(alert, report, builds):
        if one.test not in rows or one.test in known or outdated.get(one.test):
            continue
        if one.base == report.tonight.build:
            itself.append(one)
        elif is_doubtful(alert, rows[one.test]):
            others.append(replace(one, beyond=_limit_of(one.test, report)))
    return (*itself, *others[:MOST_TESTS])


def _limit_of(test: str, report: Report) -> float:
    """Beyond which the night calls a test slower."""
    noisy, limit = report.noisy.get(test), report.policy.per_test
    return limit if noisy is None else noisy.widened(limit)


def _questions(alert: Alert, report: Report, builds: Mapping[datetime, str]) -> list[Question]:
    """The tests that changed most first, each against the build that its interval is from; where it has none, as the
    limits opened the alert, against the newest night in which all was well, by at least what the limit is."""
    judged = {row.test: row.channel for row in report.rows if row.channel is not None}
    found = []
    for test in sorted(set(alert.tests) - {TOTAL}, key=lambda test: (-alert.effects.get(test, 0.0), test)):
        shown = max((one for one in alert.intervals if one.test == test), key=lambda one: one.effect, default=None)
        night = shown.base if shown is not None else alert.good_until
        channel = shown.channel if shown is not None else judged.get(test)
        if night is None or night not in builds or channel is None:
            continue
        effect = shown.effect if shown is not None else alert.effects.get(test, report.policy.per_test)
        if effect > 0:
            found.append(Question(test, channel, builds[night], night, effect))
    return found
