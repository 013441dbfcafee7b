"""Announcements: what is told once, in an issue of its own, and is no fault: improvements, counts, the environment.

Nothing has to recover from it, so an announcement is closed when it has been there for a while. Its nights stay what is
normal of its tests.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from baselines.confirming.state import Interval
from baselines.report import Report
from bot.filing_rules import FilingRules
from bot.github.alert import Alert, AlertNight, Announced
from bot.github.issue import key_of

TOLD = timedelta(days=14)  # then it is closed
LATELY = timedelta(days=3)  # an improvement is confirmed some nights after it was seen
AS_FAR = 1.5  # times a regression, in log units: what goes further back is more than its end


@dataclass(frozen=True)
class _News:
    """One thing to tell."""

    kind: Announced
    id: str  # the same in every night that adds to it
    findings: dict[str, str]
    since: datetime
    intervals: tuple[Interval, ...] = ()


def announce(
    alerts: Sequence[Alert], report: Report, file: FilingRules, show: Callable[[Alert], str] = lambda alert: ""
) -> tuple[Alert, ...]:
    """All alerts with what the night announces. Applying the same night again changes nothing."""
    after = {alert.key: _closed_if_old(alert, report) for alert in alerts}
    for news in _news(report, file, alerts):
        key = key_of(report.suite, report.machine_class, news.kind, news.id)
        before = after.get(key)
        if before is None or not before.knows(report.tonight.run):
            alert = _told(before, key, news, report)
            after[key] = alert.model_copy(update={"evidence": show(alert), "revision": alert.revision + 1})
    return tuple(after.values())


def _news(report: Report, file: FilingRules, alerts: Sequence[Alert]) -> list[_News]:
    outcome = report.confirmation
    if outcome is None:
        return []
    found = []
    for filed in outcome.filed:
        if filed.kind == "improvement" and file.improvement != "never":
            new = {
                test: effect for test, effect in filed.effects().items() if not _undoes(test, effect, alerts, report)
            }
            effects = {test: f"{effect:+.1%}" for test, effect in sorted(new.items())}
            intervals = tuple(one for one in filed.intervals if one.test in new)
            if new:
                found.append(_News("improvement", filed.id, effects, filed.onset.low, intervals))
        if filed.kind == "environment" and file.environment != "never":
            found.append(_News("environment", filed.id, {"environment": filed.why}, filed.onset.low))
    slow = {test for alert in alerts if alert.is_open and not alert.is_announcement for test in alert.tests}
    counts: dict[str, list[str]] = {}
    for one in outcome.exact:
        if one.kind == "count change" and one.settled and one.test not in slow:  # else it stands in that issue
            counts.setdefault(one.test, []).append(f"{one.channel} {one.before[0]} -> {one.tonight[0]}")
    if counts and file.count != "never":
        told = {test: ", ".join(several) for test, several in sorted(counts.items())}
        found.append(_News("count", report.tonight.run, told, report.tonight.started))
    return found


def _undoes(test: str, effect: float, alerts: Sequence[Alert], report: Report) -> bool:
    """Whether an improvement is a regression that goes away, which its own issue tells: it goes back about as far."""
    back = -math.log1p(effect) if effect > -1 else math.inf
    return any(
        alert.kind == "regression"
        and test in alert.tests
        and (alert.closed is None or (alert.has_recovered and report.tonight.started - alert.closed <= LATELY))
        and back <= AS_FAR * math.log1p(alert.effects.get(test, report.policy.per_test))
        for alert in alerts
    )


def _told(before: Alert | None, key: str, news: _News, report: Report) -> Alert:
    tonight = report.tonight
    night = AlertNight(run=tonight.run, started=tonight.started, build=tonight.build, findings=news.findings)
    if before is None:
        return Alert(
            key=key,
            kind=news.kind,
            suite=report.suite,
            machine_class=report.machine_class,
            opened=news.since,
            tests=tuple(sorted(news.findings)),
            nights=(night,),
            signal=news.id,
            intervals=news.intervals,
        )
    return before.model_copy(
        update={
            "tests": tuple(sorted({*before.tests, *news.findings})),
            "nights": (*before.nights, night),
            "intervals": (*before.intervals, *news.intervals),
        }
    )


def _closed_if_old(alert: Alert, report: Report) -> Alert:
    if not alert.is_announcement or not alert.is_open or report.tonight.started - alert.nights[-1].started <= TOLD:
        return alert
    return alert.model_copy(
        update={
            "closed": report.tonight.started,
            "closed_because": f"told {TOLD.days} days ago",
            "revision": alert.revision + 1,
        }
    )
