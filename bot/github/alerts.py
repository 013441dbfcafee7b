"""Alerts: what people see as one issue each, and how the report of a night changes them. Pure rules over stored state.

A finding belongs to the open alert of its kind that has its test, or that was opened so recently that both are most
likely one change; what is left over makes one new alert. Nights inside an alert are no baseline for its tests.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from baselines.report import Report, Row, State
from baselines.rolling import Mask
from baselines.series import UtcTime
from bot.github.issue import key_of
from regression_detector import TOTAL

RECOVERED_NIGHTS = 3  # in a row, before an alert is closed
RELAPSE = timedelta(days=30)  # within which a closed alert is opened again instead of a new one made
SAME_CHANGE = timedelta(days=3)  # a test found slower so soon after others was most likely slowed by the same change
NIGHTS_KEPT = 60  # in an alert, so that it stays small however long it lives

RECOVERED = "recovered"

Kind = Literal["regression", "failure"]
KINDS: tuple[Kind, ...] = ("regression", "failure")
Findings = Mapping[str, str]  # test id or "total" -> what was found, such as "+61.2%"

_FAILING = (State.NEWLY_FAILING, State.STILL_FAILING)
_SEGMENT_ENDED = (State.WORKLOAD_CHANGE, State.ENVIRONMENT_CHANGE)


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class AlertNight(_Schema):
    """What one night said of an alert's tests."""

    run: str
    started: UtcTime
    build: str
    findings: dict[str, str]
    note: str = ""


class Alert(_Schema):
    """One alert, as stored."""

    key: str  # hidden in the issue, by which it is found again
    kind: Kind
    suite: str
    machine_class: str = Field(alias="class")
    opened: UtcTime
    closed: UtcTime | None = None
    closed_because: str = ""
    tests: tuple[str, ...]  # every test it ever had; "total" if only the total moved
    recovered_since: UtcTime | None = None  # the first of the good nights in a row
    recovered_nights: int = 0
    nights: tuple[AlertNight, ...]

    @property
    def is_open(self) -> bool:
        return self.closed is None

    @property
    def has_recovered(self) -> bool:
        """Closed as its tests were good again; otherwise they could not be compared any more, and what comes is new."""
        return self.closed_because.startswith(RECOVERED)

    def knows(self, run: str) -> bool:
        return any(night.run == run for night in self.nights)


def masks(alerts: Iterable[Alert]) -> dict[str, list[Mask]]:
    """Per test, or "total": the times inside an alert. They stay masked when the alert is closed: the slow nights in
    it were slow."""
    found: dict[str, list[Mask]] = {}
    for alert in alerts:
        until = None if alert.is_open else alert.recovered_since or alert.closed
        for test in alert.tests:
            found.setdefault(test, []).append(Mask(alert.opened, until, since_open=alert.is_open))
    return found


def apply_report(alerts: Sequence[Alert], report: Report) -> tuple[Alert, ...]:
    """All alerts after the night. Applying the same night again changes nothing."""
    if report.verdict == "broken":
        return tuple(alerts)  # a night without a number says nothing of any test
    after = {alert.key: alert for alert in alerts}
    for kind in KINDS:
        left = dict(_findings(report, kind))
        for alert in sorted(_takers(alerts, kind, report), key=lambda alert: not alert.is_open):
            mine = {test: left.pop(test) for test in list(left) if _takes(alert, test, report)}
            after[alert.key] = _after_night(alert, report, mine)
        if left:
            new = _opened(kind, report, left)
            after[new.key] = new
    return tuple(after.values())


def _findings(report: Report, kind: Kind) -> Findings:
    if kind == "failure":
        # What failed before anybody watched is told in every report, but is no news to file.
        return {
            row.test: row.reason
            for row in report.rows
            if row.state is State.NEWLY_FAILING or (row.state is State.STILL_FAILING and row.alert is not None)
        }
    slower = {row.test: f"{row.change:+.1%}" for row in report.rows if row.state is State.SLOWER}
    if not slower and report.total is not None and report.total.state is State.SLOWER:
        return {TOTAL: f"{report.total.change:+.2%}"}
    return slower


def _takers(alerts: Iterable[Alert], kind: Kind, report: Report) -> list[Alert]:
    """The alerts of this kind that the night can concern: open, or closed so recently that it may be a relapse."""
    return [
        alert
        for alert in alerts
        if alert.kind == kind and (alert.closed is None or (alert.has_recovered and _is_recent(alert, report)))
    ]


def _is_recent(alert: Alert, report: Report) -> bool:
    return alert.closed is not None and report.tonight.started - alert.closed <= RELAPSE


def _takes(alert: Alert, test: str, report: Report) -> bool:
    if test in alert.tests or alert.key == _key(alert.kind, report):  # what its own night opened, told late
        return not _predates(alert, report).get(test, False)
    return alert.is_open and abs(report.tonight.started - alert.opened) <= SAME_CHANGE


def _key(kind: Kind, report: Report) -> str:
    """Of the alert that this night opens."""
    return key_of(report.suite, report.machine_class, kind, report.tonight.run)


def _predates(alert: Alert, report: Report) -> dict[str, bool]:
    """Per test whether the alert is of a time that tonight cannot be compared with: a change of its workload or of the
    environment has begun its series anew since."""
    if alert.kind == "failure":
        return {row.test: row.state in _SEGMENT_ENDED for row in report.rows}
    return {row.test: row.segment_since is not None and row.segment_since > alert.opened for row in report.rows}


def _opened(kind: Kind, report: Report, found: Findings) -> Alert:
    tonight = report.tonight
    return Alert(
        key=_key(kind, report),
        kind=kind,
        suite=report.suite,
        machine_class=report.machine_class,
        opened=tonight.started,
        tests=tuple(sorted(found)),
        nights=(_night(report, found, "opened"),),
    )


def _after_night(alert: Alert, report: Report, found: Findings) -> Alert:
    if alert.knows(report.tonight.run) or report.tonight.started < alert.nights[-1].started:
        return _with_late_findings(alert, report, found)
    if found:
        return _with_night(
            alert,
            report,
            found,
            note="" if alert.is_open else "reopened: it is back",
            closed=None,
            closed_because="",
            recovered_since=None,
            recovered_nights=0,
            opened=min(alert.opened, report.tonight.started),  # a clock that was ahead must not leave nights unmasked
            tests=tuple(sorted({*alert.tests, *found})),
        )
    if not alert.is_open:
        return alert
    rows = [row for row in report.rows if TOTAL in alert.tests or row.test in alert.tests]
    predates = _predates(alert, report)
    comparable = [row for row in rows if not (predates.get(row.test) or row.left_out or row.state is State.GONE)]
    if not comparable:
        reason = f"closed: {_why_not_comparable(rows)}, so its tests cannot be compared with the time before"
        return _with_night(alert, report, {}, note=reason, closed=report.tonight.started, closed_because=reason)
    named = [
        row for row in comparable if row.test in alert.tests
    ]  # of the total, its own value counts, and not each row
    if not all(_recovered(alert, row) for row in named) or _total_still_slow(alert, report):
        return alert  # a test that failed or has no value tonight says nothing either way
    return _recovering(alert, report)


def _with_late_findings(alert: Alert, report: Report, found: Findings) -> Alert:
    """The alert with what has become known of one of its nights, or of one before its newest, by a shard that came
    late. That changes what the alert holds, and not whether it is open: newer nights have spoken since."""
    known = next((night.findings for night in alert.nights if night.run == report.tonight.run), {})
    if not found.keys() - known.keys():
        return alert
    others = [night for night in alert.nights if night.run != report.tonight.run]
    note = next((night.note for night in alert.nights if night.run == report.tonight.run), "told late")
    nights = [*others, _night(report, {**found, **known}, note)]
    return alert.model_copy(
        update={
            "nights": tuple(sorted(nights, key=lambda night: night.started)),
            "opened": min(alert.opened, report.tonight.started),
            "tests": tuple(sorted({*alert.tests, *found})),
        }
    )


def _recovering(alert: Alert, report: Report) -> Alert:
    count, since = alert.recovered_nights + 1, alert.recovered_since or report.tonight.started
    done = count >= RECOVERED_NIGHTS
    return _with_night(
        alert,
        report,
        {},
        note=f"recovered, night {count} of {RECOVERED_NIGHTS}" + (": closed" if done else ""),
        recovered_since=since,
        recovered_nights=count,
        closed=report.tonight.started if done else None,
        closed_because=f"{RECOVERED} for {RECOVERED_NIGHTS} nights" if done else "",
    )


def _recovered(alert: Alert, row: Row) -> bool:
    if alert.kind == "failure":
        return row.state not in _FAILING and row.tonight is not None
    return row.change is not None and row.state is not State.SLOWER


def _total_still_slow(alert: Alert, report: Report) -> bool:
    return TOTAL in alert.tests and (report.total is None or report.total.state is State.SLOWER)


def _why_not_comparable(rows: Sequence[Row]) -> str:
    if rows and all(row.left_out for row in rows):
        return "left out on purpose"
    told = sorted({str(row.state) for row in rows if row.state in (*_SEGMENT_ENDED, State.GONE)})
    if rows and not told:
        return "workload or environment have changed"
    return ", ".join(told or [str(State.GONE)])


def _with_night(alert: Alert, report: Report, found: Findings, *, note: str, **changes: object) -> Alert:
    nights = (*alert.nights, _night(report, found, note))
    return alert.model_copy(update={**changes, "nights": (*nights[:1], *nights[1:][-NIGHTS_KEPT + 1 :])})


def _night(report: Report, found: Findings, note: str) -> AlertNight:
    tonight = report.tonight
    return AlertNight(
        run=tonight.run, started=tonight.started, build=tonight.build, findings=dict(sorted(found.items())), note=note
    )
