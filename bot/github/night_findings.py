"""What the report of a night found that alerts are of: what was filed, what the limits call slower, what fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from baselines.confirming.exact_measured import ExactMeasured
from baselines.confirming.state import Interval
from baselines.night_evidence import TOTAL
from baselines.report import Report, Row, State
from bot.github.alert import Alert, Findings, Kind

RECOVERED_SHARE = 0.5  # of the confirmed effect: a test that is slower by less than that is good again
FAILING = (State.NEWLY_FAILING, State.STILL_FAILING)


@dataclass(frozen=True)
class Signal:
    """A change of a test that was filed tonight."""

    id: str  # of what was filed, which is one alert
    test: str
    effect: float  # a share; the largest of the test's channels
    since: datetime  # the first night that may have it
    intervals: tuple[Interval, ...]


def signals_of(report: Report) -> dict[str, Signal]:
    """What is filed tonight, by test."""
    found: dict[str, Signal] = {}
    for filed in report.confirmation.filed if report.confirmation else ():
        if filed.kind != "regression":
            continue
        for test, effect in filed.effects().items():
            if test not in found or effect > found[test].effect:
                shown = tuple(one for one in filed.intervals if one.test == test)
                found[test] = Signal(filed.id, test, effect, filed.onset.low, shown)
    return found


def by_signal(found: Findings, signals: Mapping[str, Signal]) -> list[Findings]:
    """The findings of each change that was filed, and those of none together."""
    groups: dict[str, dict[str, str]] = {}
    for test, told in found.items():
        groups.setdefault(signals[test].id if test in signals else "", {})[test] = told
    return [groups[name] for name in sorted(groups)]


def findings_of(report: Report, kind: Kind, alerts: Sequence[Alert]) -> Findings:
    if kind == "failure":
        return _failures(report, alerts)
    if report.confirmation is not None:
        known = {
            row.test: f"{row.change:+.1%}"
            for alert in alerts
            if alert.kind == kind and alert.is_open  # what is back is asked by pairs again, as what is new
            for row in report.rows
            if row.test in alert.tests and row.change is not None and not is_recovered(alert, row)
        }
        return {**known, **{test: f"{signal.effect:+.1%}" for test, signal in signals_of(report).items()}}
    slower = {row.test: f"{row.change:+.1%}" for row in report.rows if row.state is State.SLOWER}
    if not slower and report.total is not None and report.total.state is State.SLOWER:
        return {TOTAL: f"{report.total.change:+.2%}"}
    return slower


def _failures(report: Report, alerts: Sequence[Alert]) -> Findings:
    """What failed before anybody watched is told in every report, but is no news to file; neither is what fresh
    processes did not all show."""
    asked = {one.test: one for one in _exact(report) if one.kind == "newly failing"}
    known = {test for alert in alerts if alert.kind == "failure" and alert.is_open for test in alert.tests}
    found = {}
    for row in report.rows:
        if row.state not in FAILING:
            continue
        if row.test in report.noisy and row.test not in known and row.test not in asked:
            if report.noisy[row.test].has_failed_long(row.good_until, report.tonight.started):
                found[row.test] = row.reason
            continue
        if row.test in asked and row.test not in known:
            if asked[row.test].settled:
                found[row.test] = row.reason
        elif row.state is State.NEWLY_FAILING or row.alert is not None:
            found[row.test] = row.reason
    return found


def _exact(report: Report) -> Sequence[ExactMeasured]:
    """What was asked again tonight of what changed its status or a count."""
    return report.confirmation.exact if report.confirmation is not None else ()


def is_recovered(alert: Alert, row: Row) -> bool:
    if alert.kind == "failure":
        return row.state not in FAILING and row.tonight is not None
    if row.change is None or row.state is State.SLOWER:
        return False
    confirmed = alert.effects.get(row.test)
    return confirmed is None or row.change < RECOVERED_SHARE * confirmed
