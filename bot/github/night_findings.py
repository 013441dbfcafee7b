"""What the report of a night found that alerts are of: what was filed, what the limits call slower, what fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from baselines.confirming.exact_measured import ExactMeasured
from baselines.confirming.shares import gone_below
from baselines.confirming.state import Gone, Interval
from baselines.night_evidence import TOTAL
from baselines.report import Report, Row, State
from bot.github.alert import Alert, Findings, Kind

FAILING = (State.NEWLY_FAILING, State.STILL_FAILING)
SEGMENT_ENDED = (State.WORKLOAD_CHANGE, State.ENVIRONMENT_CHANGE)
Standing = Literal["there", "cleared", "recovered", "untold"]  # cleared: slower by its figures, and not by pairs


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
            row.test: f"{_effect_of(alert, row, report):+.1%}"
            for alert in alerts
            if alert.kind == kind and alert.is_open  # what is back is asked by pairs again, as what is new
            for row in report.rows
            if row.test in alert.tests and not predates(alert, row) and standing_of(alert, row, report) == "there"
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


def predates(alert: Alert, row: Row) -> bool:
    """Whether the alert is of a time that tonight's test cannot be compared with: a change of its workload or of the
    environment has begun its series anew since."""
    if alert.kind == "failure":
        return row.state in SEGMENT_ENDED
    return row.segment_since is not None and row.segment_since > alert.opened


def predates_of(alert: Alert, report: Report) -> dict[str, bool]:
    """The same of each test of the night."""
    return {row.test: predates(alert, row) for row in report.rows}


def standing_of(alert: Alert, row: Row, report: Report) -> Standing:
    """What tonight says of a test of an alert. Its figures stand, unless pairs of the build from before the change say
    that it is gone."""
    if alert.kind == "failure":
        if row.state in FAILING:
            return "there"
        return "untold" if row.tonight is None else "recovered"
    figures = by_figures(alert, row)
    answers = answers_in_doubt(alert, row.test, report)
    if figures == "there" and answers and all(one.answer == "gone" for one in answers):
        return "cleared"
    return figures


def by_figures(alert: Alert, row: Row) -> Standing:
    """What the change of one night says of a test of an alert of something slower."""
    if row.change is None:
        return "untold"
    confirmed = alert.effects.get(row.test)
    is_good = row.state is not State.SLOWER and (confirmed is None or row.change < gone_below(confirmed))
    return "recovered" if is_good else "there"


def first_intervals(alert: Alert, test: str) -> tuple[Interval, ...]:
    """What pairs of a build from before the alert showed of a test, by channel. One from a second step on has none: its
    base has the first step, so that what is gone against it may be there still."""
    return tuple(one for one in alert.intervals if one.test == test and one.base < alert.opened)


def is_doubtful(alert: Alert, row: Row) -> bool:
    """Whether the night says slower, and not by what was confirmed of that channel: a part of it may be left, or the
    machine was busy."""
    confirmed = [one.effect for one in first_intervals(alert, row.test) if one.channel == row.channel]
    if row.state is not State.SLOWER or row.change is None or not confirmed:
        return False
    return row.change < gone_below(max(confirmed))


def answers_in_doubt(alert: Alert, test: str, report: Report) -> tuple[Gone, ...]:
    """What pairs said tonight of a test of an alert that was in doubt, by channel."""
    closings = (report.confirmation.closings if report.confirmation is not None else None) or ()
    asked = [each for one in closings if one.doubted and one.alert == alert.key for each in one.asked]
    return tuple(each for each in asked if each.test == test)


def _effect_of(alert: Alert, row: Row, report: Report) -> float:
    """By how much a test is slower still: by pairs, if they say so."""
    shown = [one.effect for one in answers_in_doubt(alert, row.test, report) if one.answer == "there"]
    return max(shown) if shown else row.change or 0.0
