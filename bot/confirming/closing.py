"""Is the change of an alert gone? That is asked before it is closed, and when a night's figures leave it in doubt: the
build from before it is measured against tonight's in pairs, on what they are measured with when something is confirmed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
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
from bot.github.alert_life import is_late
from bot.github.alerts import closing_tonight
from bot.github.night_findings import by_figures, first_intervals, is_doubtful, predates, signals_of

MOST_TESTS = 6  # of an alert, those that changed most: its other tests were good for three nights too
MOST_DOUBTED = 4  # tests of all alerts, so that most pairs are left to what is new; figures stand for the others

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
    """The alerts that the night would close as recovered, then those that it leaves in doubt, and what is asked of
    each. `nights`: those before it, whose builds may be asked for."""
    builds = {night.started: night.build.id for night in nights}
    closing = [
        AskedClosing(alert.key, tuple(_questions(alert, report, builds)))
        for alert in sorted(closing_tonight(alerts, report, now=now), key=_by_age)
    ]
    return (*closing, *_in_doubt([one for one in alerts if not is_late(one, report, now)], report, builds))


def _by_age(alert: Alert) -> tuple[datetime, str]:
    return alert.opened, alert.key


def _in_doubt(alerts: Collection[Alert], report: Report, builds: Mapping[datetime, str]) -> list[AskedClosing]:
    """Of open alerts the tests that tonight calls slower. Measured on the build from before the change, or not by what
    was confirmed, that may be the machine: the question is whether they are slower by more than the limit."""
    known, itself, others = signals_of(report), [], []
    for alert in sorted(alerts, key=_by_age):
        if not alert.is_open or alert.kind != "regression":
            continue
        for row in sorted(report.rows, key=lambda row: (-alert.effects.get(row.test, 0.0), row.test)):
            if row.test not in alert.tests or row.test in known or predates(alert, row):
                continue
            if by_figures(alert, row) != "there":
                continue
            beyond = _limit_of(row.test, report)
            asked = [
                Question(one.test, one.channel, builds[one.base], one.base, one.effect, beyond)
                for one in first_intervals(alert, row.test)
                if one.base in builds
            ]
            if own := tuple(one for one in asked if one.base == report.tonight.build):
                itself.append(AskedClosing(alert.key, own, doubted=True))
            elif asked and is_doubtful(alert, row):
                others.append(AskedClosing(alert.key, tuple(asked), doubted=True))
    return [*itself, *others[:MOST_DOUBTED]]


def _limit_of(test: str, report: Report) -> float:
    """Beyond which the night calls a test slower."""
    noisy, limit = report.noisy.get(test), report.policy.per_test
    return limit if noisy is None else noisy.widened(limit)


def _questions(alert: Alert, report: Report, builds: Mapping[datetime, str]) -> list[Question]:
    """Of the tests that changed most, each against the build that its interval is from. Where it has none, as the
    limits opened the alert, or only that of a second step, against the newest night in which all was well."""
    judged = {row.test: row.channel for row in report.rows if row.channel is not None}
    found = []
    for test in sorted(set(alert.tests) - {TOTAL}, key=lambda test: (-alert.effects.get(test, 0.0), test)):
        mine = [one for one in alert.intervals if one.test == test]
        first = first_intervals(alert, test)
        shown = max(first or mine, key=lambda one: one.effect, default=None)
        night, beyond = (shown.base, None) if shown is not None else (alert.good_until, None)
        if mine and not first and alert.good_until is not None and alert.good_until < alert.opened:
            night, beyond = alert.good_until, report.policy.per_test  # of all steps together nothing was confirmed
        channel = shown.channel if shown is not None else judged.get(test)
        if night is None or night not in builds or channel is None:
            continue
        effect = shown.effect if shown is not None else alert.effects.get(test, report.policy.per_test)
        if effect > 0:
            found.append(Question(test, channel, builds[night], night, effect, beyond))
    return found[:MOST_TESTS]
