"""The confirming step of a night: what the screen or the limits found is measured again, both builds side by side, and
only what new pairs show twice is filed."""

import math
from collections.abc import Collection

from baselines.confirming.bench import Bench
from baselines.confirming.class_nights import seen_tonight
from baselines.confirming.night import Named, run_night
from baselines.confirming.rules import Rules
from baselines.confirming.state import NightOutcome, SeriesKey
from baselines.confirming.stored_state import read_state, write_state
from baselines.history import read_nights
from baselines.policy import Policy
from baselines.report import Report, State
from baselines.screening import WINDOW
from baselines.series import NightSummary, chronological
from baselines.store import Store
from bot.github.alerts import Alert
from torchbenchmark.quantity import counted


def confirm_night(
    store: Store, tonight: NightSummary, report: Report, policy: Policy, bench: Bench, rules: Rules | None = None
) -> NightOutcome | None:
    """What the night comes to, stored with what it leaves behind; None if it has nothing that could be judged.

    A night that was concluded already comes to the same, and one that newer nights have overtaken to nothing more.
    """
    state, version = read_state(store, tonight.suite, tonight.machine_class)
    if state.last_night is not None and tonight.started <= state.last_night:
        done = state.outcome
        return done if done is not None and done.night == tonight.started else NightOutcome(night=tonight.started)
    nights = read_nights(store, tonight.suite, tonight.machine_class, WINDOW, before=tonight.started)
    seen = seen_tonight(tonight, chronological(nights), policy)
    if seen is None:
        return None
    run_night(seen, state, bench, rules or Rules(), _named(report, set(seen.series)))
    write_state(store, tonight.suite, tonight.machine_class, state, version)
    return state.outcome


def _named(report: Report, series: Collection[SeriesKey]) -> list[Named]:
    """What the limits call slower or faster, and no alert has told of yet."""
    found = []
    for row in report.rows:
        if row.state not in (State.SLOWER, State.FASTER) or row.alert is not None:
            continue
        if row.channel is None or row.change is None or row.good_until is None:
            continue
        key = SeriesKey(row.test, row.channel)
        if key in series:
            found.append(Named(key, math.log1p(row.change), row.good_until))
    return found


def with_confirmation(report: Report, outcome: NightOutcome) -> Report:
    """The report with what was measured again in it: that decides, and the limits alone decide nothing."""
    report = report.model_copy(update={"confirmation": outcome})
    if report.verdict in ("broken", "baseline made"):
        return report
    failing = report.tests(State.NEWLY_FAILING)
    slower = sorted({one.test for one in outcome.confirmed if one.kind == "regression"} | _slower_filed(outcome))
    told = []
    if failing:
        told.append(f"newly failing: {_few(failing)}")
    if slower:
        told.append(f"confirmed slower: {_few(slower)}")
    if told:
        return report.model_copy(update={"verdict": "regression", "reason": "; ".join(told)})
    tried = counted(len(outcome.tried), "suspect")
    reason = f"{tried} measured again, none confirmed" if outcome.tried else "nothing to measure again"
    return report.model_copy(update={"verdict": "clean", "reason": reason})


def still_slow(report: Report, alerts: Collection[Alert]) -> Report:
    """A night whose open alerts found their tests slow is no clean one, though it found nothing new."""
    run = report.tonight.run
    found = sorted(
        {
            test
            for alert in alerts
            if alert.is_open
            for night in alert.nights
            if night.run == run
            for test in night.findings
        }
    )
    if report.verdict != "clean" or not found:
        return report
    return report.model_copy(update={"verdict": "regression", "reason": f"still slower or failing: {_few(found)}"})


def _slower_filed(outcome: NightOutcome) -> set[str]:
    return {test for filed in outcome.filed if filed.kind == "regression" for test in filed.effects()}


def _few(tests: Collection[str], most: int = 3) -> str:
    names = list(tests)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
