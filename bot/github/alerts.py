"""Alerts: what people see as one issue each, and how the report of a night changes them. Pure rules over stored state.

A finding belongs to the open alert of its kind that has its test, or that was opened so recently that both are most
likely one change; what is left over makes one new alert. Nights inside an alert are no baseline for its tests.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from baselines.report import Report
from bot.filing_rules import FilingRules
from bot.github.alert import KINDS, Alert, Findings, Kind
from bot.github.alert_life import after_night, good_until, night_of
from bot.github.issue import key_of
from bot.github.night_findings import Signal, by_signal, findings_of, predates_of, signals_of

RELAPSE = timedelta(days=30)  # within which a closed alert is opened again instead of a new one made
SAME_CHANGE = timedelta(days=3)  # a test found slower so soon after others was most likely slowed by the same change


def closing_tonight(alerts: Iterable[Alert], report: Report, *, now: datetime) -> list[Alert]:
    """The alerts of something slower that the night would close as recovered, if nobody asked pairs."""
    before = list(alerts)
    if report.confirmation is not None:
        unasked = report.confirmation.model_copy(update={"closings": None})
        report = report.model_copy(update={"confirmation": unasked})
    after = {alert.key: alert for alert in apply_report(before, report, now=now)}
    return [
        alert
        for alert in before
        if alert.is_open
        and alert.kind == "regression"
        and not after[alert.key].is_open
        and after[alert.key].has_recovered
    ]


def apply_report(
    alerts: Sequence[Alert],
    report: Report,
    *,
    now: datetime,
    show: Callable[[Alert], str] = lambda alert: "",
    file: FilingRules | None = None,
) -> tuple[Alert, ...]:
    """All alerts after the night. Applying the same night again changes nothing.

    Where the report has a confirmation, what is filed in it opens alerts, and the limits alone open none.
    `now` tells a night whose clock was ahead; `show` gives the evidence of an alert in which the night found something;
    `file` says what is never filed.
    """
    if report.verdict == "broken":
        return tuple(alerts)  # a night without a number says nothing of any test
    after, rules = {alert.key: alert for alert in alerts}, file or FilingRules()
    for kind in KINDS:
        left = dict(findings_of(report, kind, alerts))
        signals = signals_of(report) if kind == "regression" else {}
        known = {test for alert in alerts if alert.kind == kind and alert.is_open for test in alert.tests}
        over = _decided_meanwhile(alerts, kind, report) - signals.keys()
        left = {
            test: told
            for test, told in left.items()
            if test in known or (test not in over and _is_to_be_filed(kind, report, signals.get(test), rules))
        }
        for alert in sorted(_takers(alerts, kind, report), key=lambda alert: not alert.is_open):
            mine = {test: left.pop(test) for test in list(left) if _takes(alert, test, report, signals.get(test))}
            found = [signals[test] for test in mine if test in signals]
            after[alert.key] = _with_signals(after_night(alert, report, mine, now), found)
        for together in by_signal(left, signals):
            new = _opened(kind, report, together, [signals[test] for test in together if test in signals])
            after[new.key] = new
    before = {alert.key: alert for alert in alerts}
    return tuple(_revised(before.get(key), alert, report, show) for key, alert in after.items())


def _decided_meanwhile(alerts: Iterable[Alert], kind: Kind, report: Report) -> set[str]:
    """Tests whose level was accepted, or that were called noise, after tonight began, which is judged by what was known
    before: what the limits call slower is what was decided on."""
    return {
        test
        for alert in alerts
        if alert.kind == kind
        for decided in (alert.accepted, alert.noise)
        if decided is not None and decided.at > report.tonight.started
        for test in alert.tests
    }


def _revised(before: Alert | None, after: Alert, report: Report, show: Callable[[Alert], str]) -> Alert:
    """The alert with its number, and with the evidence of tonight if that is its newest night with a finding."""
    if after == before:
        return after
    newest = after.newest_finding
    if newest is not None and newest.run == report.tonight.run:
        after = after.model_copy(update={"evidence": show(after)})
    return after.model_copy(update={"revision": after.revision + 1})


def _is_to_be_filed(kind: Kind, report: Report, signal: "Signal | None", file: FilingRules) -> bool:
    """Whether what no alert has yet is to be filed at all. Without a signal it is the limits that call it slower."""
    if kind == "failure":
        return file.failing != "never"
    return file.files_regression(signal is None or signal.effect > report.policy.per_test)


def _with_signals(alert: Alert, signals: Sequence[Signal]) -> Alert:
    """The alert with what was confirmed of its tests; what was known of one of them before is of before."""
    if not signals:
        return alert
    tests = {one.test for one in signals}
    kept = [one for one in alert.intervals if one.test not in tests]
    return alert.model_copy(
        update={
            "effects": {**alert.effects, **{one.test: one.effect for one in signals}},
            "intervals": (*kept, *(interval for one in signals for interval in one.intervals)),
        }
    )


def _takers(alerts: Iterable[Alert], kind: Kind, report: Report) -> list[Alert]:
    """The alerts of this kind that the night can concern: open, or closed so recently that it may be a relapse."""
    return [
        alert
        for alert in alerts
        if alert.kind == kind and (alert.closed is None or (alert.has_recovered and _is_recent(alert, report)))
    ]


def _is_recent(alert: Alert, report: Report) -> bool:
    return alert.closed is not None and report.tonight.started - alert.closed <= RELAPSE


def _takes(alert: Alert, test: str, report: Report, signal: Signal | None) -> bool:
    if signal is not None and signal.id == alert.signal:
        return True
    if test in alert.tests or alert.key == _key(alert.kind, report):  # what its own night opened, told late
        return not predates_of(alert, report).get(test, False)
    if signal is not None:  # it was told apart by when it came in, which says more than when it was found
        return False
    return alert.is_open and abs(report.tonight.started - alert.opened) <= SAME_CHANGE


def _key(kind: Kind, report: Report, signal: str = "") -> str:
    """Of the alert that this night opens, or of one of several."""
    return key_of(report.suite, report.machine_class, kind, report.tonight.run + signal)


def _opened(kind: Kind, report: Report, found: Findings, signals: Sequence[Signal]) -> Alert:
    """An alert of tonight; of what was confirmed from the first night on that may have it: that was slow already."""
    tonight = report.tonight
    signal = next((one.id for one in signals), "")
    alert = Alert(
        key=_key(kind, report, signal),
        signal=signal,
        kind=kind,
        suite=report.suite,
        machine_class=report.machine_class,
        opened=min((one.since for one in signals), default=tonight.started),
        good_until=good_until(report, found),
        tests=tuple(sorted(found)),
        nights=(night_of(report, found, "opened"),),
    )
    return _with_signals(alert, signals)
