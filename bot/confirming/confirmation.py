"""The confirming step of a night: what the screen or the limits found is measured again, both builds side by side, and
only what new pairs show twice is filed."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from baselines.confirming.accepting import accept_levels
from baselines.confirming.bench import Bench
from baselines.confirming.class_nights import seen_tonight
from baselines.confirming.exact import ExactChange
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules, Urgency
from baselines.confirming.seen import Seen
from baselines.confirming.shares import log_of
from baselines.confirming.state import ClassState, NightOutcome, SeriesKey
from baselines.confirming.stored_state import read_state, write_state
from baselines.confirming.tonight import Named
from baselines.history import read_nights
from baselines.policy import Policy
from baselines.report import Report, State
from baselines.screening import WINDOW
from baselines.series import NightSummary, chronological
from baselines.store import Store
from bot.config import NightlyConfig
from bot.confirming.bench import bench_of_night, closing_bench
from bot.confirming.closing import confirm_closings
from bot.confirming.exact_changes import exact_changes
from bot.filing_rules import FilingRules, When
from bot.github.alert import Alert
from bot.github.alert_store import read_alerts
from bot.triage.accepting import accepted_levels
from bot.triage.calling_noise import noisy_tests


@dataclass(frozen=True)
class Looked:
    """A night as the rules of confirming look at it, before anything is measured."""

    tonight: NightSummary
    history: Sequence[NightSummary]  # whose builds may be asked for
    seen: Seen
    state: ClassState  # what the nights before left behind
    named: Sequence[Named]
    exact: Sequence[ExactChange]
    version: str | None = None  # of the state, which it is replaced by


def confirm_here(
    config: NightlyConfig, store: Store, policy: Policy, tonight: NightSummary, report: Report, canary: str
) -> NightOutcome | None:
    """Confirm a night on this machine, which has measured it. What was measured lies in `work` until it is removed."""
    bench = partial(bench_of_night, config, store, tonight)
    return confirm_night(store, tonight, report, policy, bench, canary, rules_of(config.file, policy))


def rules_of(file: FilingRules, policy: Policy) -> Rules:
    """The rules of confirming, with what is to be filed without waiting for another night."""
    kinds: dict[Urgency, When] = {
        "severe": file.severe,
        "regression": file.regression,
        "improvement": file.improvement,
    }
    return Rules(
        failing_nights=2 if file.failing == "persistent" else 1,
        at_once=frozenset(kind for kind, when in kinds.items() if when == "confirmed"),
        severe_above=math.log1p(policy.per_test),
    )


def confirm_closings_here(
    config: NightlyConfig,
    store: Store,
    tonight: NightSummary,
    report: Report,
    alerts: Collection[Alert],
    now: datetime,
) -> Report:
    """Ask pairs on this machine about the alerts that the night would close."""
    return confirm_closings(store, tonight, report, alerts, partial(closing_bench, config, store, tonight), now)


def confirm_night(
    store: Store,
    tonight: NightSummary,
    report: Report,
    policy: Policy,
    bench: Callable[[Sequence[NightSummary]], Bench],
    canary: str = "",
    rules: Rules | None = None,
) -> NightOutcome | None:
    """What the night comes to, stored with what it leaves behind; None if it has nothing that could be judged.

    `bench` makes one out of the nights before, whose builds it may be asked for; `canary` says why the frozen build
    speaks of another environment, and is empty where it does not.
    A night that was concluded already comes to the same, and one that newer nights have overtaken to nothing more.
    """
    looked = look_at_night(store, tonight, report, policy, canary)
    if not isinstance(looked, Looked):
        return looked
    confirm_looked(looked, bench(looked.history), rules or Rules())
    store_outcome(store, looked)
    return looked.state.outcome


def look_at_night(
    store: Store, tonight: NightSummary, report: Report, policy: Policy, canary: str = ""
) -> Looked | NightOutcome | None:
    """What a night is confirmed from; its outcome if it was concluded already; None of one with nothing to judge."""
    state, version = read_state(store, tonight.suite, tonight.machine_class)
    if (known := outcome_in(state, tonight)) is not None:
        return known
    nights = chronological(read_nights(store, tonight.suite, tonight.machine_class, WINDOW, before=tonight.started))
    seen = seen_tonight(tonight, nights, policy, canary)
    if seen is None:
        return None
    alerts = read_alerts(store, tonight.suite, tonight.machine_class)
    accept_levels(state, accepted_levels(alerts), seen)
    state.noisy = noisy_tests(alerts, tonight.started)
    named, exact = _named(report, set(seen.series), alerts), exact_changes(report, tonight, nights, state)
    return Looked(tonight, nights, seen, state, named, exact, version)


def confirm_looked(looked: Looked, bench: Bench, rules: Rules) -> None:
    """Have a night measured again by a bench. `looked.state` is then what it came to."""
    run_night(looked.seen, looked.state, bench, rules, looked.named, looked.exact)


def store_outcome(store: Store, looked: Looked) -> None:
    """Store what a night leaves behind, now that `looked.state` is what it came to."""
    tonight = looked.tonight
    write_state(store, tonight.suite, tonight.machine_class, looked.state, looked.version)


def outcome_in(state: ClassState, tonight: NightSummary) -> NightOutcome | None:
    """What a night that is concluded came to, nothing more if newer ones have overtaken it; None of one that is not."""
    if state.last_night is None or tonight.started > state.last_night:
        return None
    done = state.outcome
    return done if done is not None and done.night == tonight.started else NightOutcome(night=tonight.started)


def _named(report: Report, series: Collection[SeriesKey], alerts: Iterable[Alert]) -> list[Named]:
    """What the limits call slower or faster, and no alert has told of yet."""
    found = []
    recovered = _recovered(alerts)
    for row in report.rows:
        if row.state not in (State.SLOWER, State.FASTER) or row.alert is not None:
            continue
        if row.channel is None or row.change is None or row.good_until is None:
            continue
        key = SeriesKey(row.test, row.channel)
        if key in series:
            closed = recovered.get(row.test) if row.state is State.SLOWER else None
            found.append(Named(key, log_of(row.change), row.good_until, closed))
    return found


def _recovered(alerts: Iterable[Alert]) -> dict[str, datetime]:
    """The night that closed the last alert of a test, of those that are closed as recovered."""
    found: dict[str, datetime] = {}
    for alert in alerts:
        closed = alert.closed
        if alert.kind == "regression" and alert.has_recovered and closed is not None:
            found |= {test: max(closed, found.get(test, closed)) for test in alert.tests}
    return found
