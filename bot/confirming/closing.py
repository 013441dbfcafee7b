"""The last step before an alert is closed: is the change gone? The build from before it is measured against tonight's,
in pairs, on what they are measured with when something is confirmed."""

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
from bot.github.alerts import closing_tonight

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
    """The report with what pairs say of the alerts that it would close, stored with the night that was confirmed.

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
    """The alerts that the night would close as recovered, and what is asked of each. `nights`: those before it, whose
    builds may be asked for."""
    builds = {night.started: night.build.id for night in nights}
    closing = sorted(closing_tonight(alerts, report, now=now), key=lambda alert: (alert.opened, alert.key))
    return tuple(AskedClosing(alert.key, tuple(_questions(alert, report, builds))) for alert in closing)


def _questions(alert: Alert, report: Report, builds: Mapping[datetime, str]) -> list[Question]:
    """Of the tests that changed most, each against the build that its interval is from; where it has none, as the
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
    return found[:MOST_TESTS]
