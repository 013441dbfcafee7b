"""Alerts: what people see as one issue each, and how the report of a night changes them. Pure rules over stored state.

A finding belongs to the open alert of its kind that has its test, or that was opened so recently that both are most
likely one change; what is left over makes one new alert. Nights inside an alert are no baseline for its tests.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from baselines.confirming.exact_measured import ExactMeasured
from baselines.confirming.state import Closing, Interval
from baselines.report import Report, Row, State
from baselines.rolling import Mask
from baselines.series import UtcTime
from bot.filing_rules import FilingRules
from bot.github.issue import key_of
from bot.inside import Inside
from regression_detector import TOTAL
from torchbenchmark.quantity import counted

RECOVERED_NIGHTS = 3  # in a row, before an alert is closed
RECOVERED_SHARE = 0.5  # of the confirmed effect: a test that is slower by less than that is good again
RELAPSE = timedelta(days=30)  # within which a closed alert is opened again instead of a new one made
INCOMPARABLE_NIGHTS = 3  # in a row: then the environment or the suite has changed for good, and the alert is over
CLOCK_AHEAD = timedelta(days=1)  # a night that starts later than this from now has a wrong clock
SAME_CHANGE = timedelta(days=3)  # a test found slower so soon after others was most likely slowed by the same change
NIGHTS_KEPT = 60  # in an alert, so that it stays small however long it lives

RECOVERED = "recovered"
_INSTANT = timedelta(microseconds=1)
_EVER = datetime.min.replace(tzinfo=UTC)

Kind = Literal["regression", "failure"]
KINDS: tuple[Kind, ...] = ("regression", "failure")
Announced = Literal["improvement", "count", "environment"]  # told once (announcements.py), with no life of its own
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


class Episode(_Schema):
    """A time in which an alert was open before, and in which the tests were slow or failed."""

    since: UtcTime
    until: UtcTime


class Accepted(_Schema):
    """That a person took the level of an alert for what is normal."""

    at: UtcTime
    by: str
    since: dict[str, UtcTime]  # by test, the first night of that level


class Alert(_Schema):
    """One alert, as stored."""

    key: str  # hidden in the issue, by which it is found again
    kind: Kind | Announced
    suite: str
    machine_class: str = Field(alias="class")
    revision: int = 0  # grows with every change: what is filed of it never goes back to an older one
    opened: UtcTime  # since when it is open, or was open the last time
    good_until: UtcTime | None = None  # the newest night before that in which all was well
    earlier: tuple[Episode, ...] = ()  # when it was open before
    closed: UtcTime | None = None
    closed_because: str = ""
    tests: tuple[str, ...]  # every test it ever had; "total" if only the total moved
    recovered_since: UtcTime | None = None  # the first of the good nights in a row
    recovered_nights: int = 0
    incomparable_nights: int = 0  # in a row
    nights: tuple[AlertNight, ...]
    signal: str = ""  # the confirmed change that opened it; empty: the limits alone did
    effects: dict[str, float] = Field(default_factory=dict)  # by test, as confirmed: a share, slower is positive
    intervals: tuple[Interval, ...] = ()  # what pairs showed of its tests when they were filed
    attribution: Inside | None = None  # what got slower inside, the last time that it was profiled
    accepted: Accepted | None = None  # then it is closed, and no relapse opens it again
    evidence: str = ""  # what the newest night with a finding showed, as Markdown

    @property
    def is_open(self) -> bool:
        return self.closed is None

    @property
    def inside(self) -> Inside | None:
        """What got slower inside, if it was profiled since the alert was opened the last time."""
        known = self.attribution
        return known if known is not None and known.episode == len(self.earlier) else None

    @property
    def is_announcement(self) -> bool:
        return self.kind not in KINDS

    @property
    def has_recovered(self) -> bool:
        """Closed as its tests were good again; otherwise they could not be compared any more, and what comes is new."""
        return self.closed_because.startswith(RECOVERED)

    @property
    def newest_finding(self) -> AlertNight | None:
        """The newest night in which something was found."""
        found = [night for night in self.nights if night.findings]
        return max(found, key=lambda night: night.started, default=None)

    def knows(self, run: str) -> bool:
        return any(night.run == run for night in self.nights)


def masks(alerts: Iterable[Alert], tonight: datetime | None = None) -> dict[str, list[Mask]]:
    """Per test, or "total": the times inside an alert. They stay masked when the alert is closed: the slow nights in
    it were slow. Of an alert that was accepted it is the time before its level; but a night that began before that,
    `tonight`, goes on as if it were open still, or it would not come to the same after a kill."""
    found: dict[str, list[Mask]] = {}
    for alert in alerts:
        if alert.is_announcement:
            continue
        later = alert.accepted is not None and tonight is not None and alert.accepted.at > tonight
        if alert.accepted is not None and not later:
            for test, since in alert.accepted.since.items():
                found.setdefault(test, []).append(Mask(_EVER, since, since_open=False, accepted=True))
            continue
        is_open = alert.is_open or later
        until = None if is_open else alert.recovered_since or alert.closed
        now = Mask(alert.opened, until, since_open=is_open)
        before = [Mask(episode.since, episode.until, since_open=False) for episode in alert.earlier]
        for test in alert.tests:
            found.setdefault(test, []).extend([now, *before])
        for night in alert.nights:
            if not any(mask.holds(night.started) for mask in (now, *before)):  # told late, before good nights
                for test in night.findings:
                    found[test].append(Mask(night.started, night.started + _INSTANT, since_open=False))
    return found


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
        left = dict(_findings(report, kind, alerts))
        signals = _signals(report) if kind == "regression" else {}
        known = {test for alert in alerts if alert.kind == kind and alert.is_open for test in alert.tests}
        over = _accepted_meanwhile(alerts, kind, report) - signals.keys()
        left = {
            test: told
            for test, told in left.items()
            if test in known or (test not in over and _is_to_be_filed(kind, report, signals.get(test), rules))
        }
        for alert in sorted(_takers(alerts, kind, report), key=lambda alert: not alert.is_open):
            mine = {test: left.pop(test) for test in list(left) if _takes(alert, test, report, signals.get(test))}
            found = [signals[test] for test in mine if test in signals]
            after[alert.key] = _with_signals(_after_night(alert, report, mine, now), found)
        for together in _by_signal(left, signals):
            new = _opened(kind, report, together, [signals[test] for test in together if test in signals])
            after[new.key] = new
    before = {alert.key: alert for alert in alerts}
    return tuple(_revised(before.get(key), alert, report, show) for key, alert in after.items())


def _accepted_meanwhile(alerts: Iterable[Alert], kind: Kind, report: Report) -> set[str]:
    """Tests whose level was accepted after tonight began, which is judged by what was normal before: what the limits
    call slower is what was accepted."""
    return {
        test
        for alert in alerts
        if alert.kind == kind and alert.accepted is not None and alert.accepted.at > report.tonight.started
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


def _is_to_be_filed(kind: Kind, report: Report, signal: "_Signal | None", file: FilingRules) -> bool:
    """Whether what no alert has yet is to be filed at all. Without a signal it is the limits that call it slower."""
    if kind == "failure":
        return file.failing != "never"
    return file.files_regression(signal is None or signal.effect > report.policy.per_test)


@dataclass(frozen=True)
class _Signal:
    """A change of a test that was filed tonight."""

    id: str  # of what was filed, which is one alert
    test: str
    effect: float  # a share; the largest of the test's channels
    since: datetime  # the first night that may have it
    intervals: tuple[Interval, ...]


def _signals(report: Report) -> dict[str, _Signal]:
    """What is filed tonight, by test."""
    found: dict[str, _Signal] = {}
    for filed in report.confirmation.filed if report.confirmation else ():
        if filed.kind != "regression":
            continue
        for test, effect in filed.effects().items():
            if test not in found or effect > found[test].effect:
                shown = tuple(one for one in filed.intervals if one.test == test)
                found[test] = _Signal(filed.id, test, effect, filed.onset.low, shown)
    return found


def _by_signal(found: Findings, signals: Mapping[str, _Signal]) -> list[Findings]:
    """The findings of each change that was filed, and those of none together."""
    groups: dict[str, dict[str, str]] = {}
    for test, told in found.items():
        groups.setdefault(signals[test].id if test in signals else "", {})[test] = told
    return [groups[name] for name in sorted(groups)]


def _with_signals(alert: Alert, signals: Sequence[_Signal]) -> Alert:
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


def _findings(report: Report, kind: Kind, alerts: Sequence[Alert]) -> Findings:
    if kind == "failure":
        return _failures(report, alerts)
    if report.confirmation is not None:
        known = {
            row.test: f"{row.change:+.1%}"
            for alert in alerts
            if alert.kind == kind and alert.is_open  # what is back is asked by pairs again, as what is new
            for row in report.rows
            if row.test in alert.tests and row.change is not None and not _recovered(alert, row)
        }
        return {**known, **{test: f"{signal.effect:+.1%}" for test, signal in _signals(report).items()}}
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
        if row.state not in _FAILING:
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


def _takers(alerts: Iterable[Alert], kind: Kind, report: Report) -> list[Alert]:
    """The alerts of this kind that the night can concern: open, or closed so recently that it may be a relapse."""
    return [
        alert
        for alert in alerts
        if alert.kind == kind and (alert.closed is None or (alert.has_recovered and _is_recent(alert, report)))
    ]


def _is_recent(alert: Alert, report: Report) -> bool:
    return alert.closed is not None and report.tonight.started - alert.closed <= RELAPSE


def _takes(alert: Alert, test: str, report: Report, signal: _Signal | None) -> bool:
    if signal is not None and signal.id == alert.signal:
        return True
    if test in alert.tests or alert.key == _key(alert.kind, report):  # what its own night opened, told late
        return not _predates(alert, report).get(test, False)
    if signal is not None:  # it was told apart by when it came in, which says more than when it was found
        return False
    return alert.is_open and abs(report.tonight.started - alert.opened) <= SAME_CHANGE


def _key(kind: Kind, report: Report, signal: str = "") -> str:
    """Of the alert that this night opens, or of one of several."""
    return key_of(report.suite, report.machine_class, kind, report.tonight.run + signal)


def _predates(alert: Alert, report: Report) -> dict[str, bool]:
    """Per test whether the alert is of a time that tonight cannot be compared with: a change of its workload or of the
    environment has begun its series anew since."""
    if alert.kind == "failure":
        return {row.test: row.state in _SEGMENT_ENDED for row in report.rows}
    return {row.test: row.segment_since is not None and row.segment_since > alert.opened for row in report.rows}


def _opened(kind: Kind, report: Report, found: Findings, signals: Sequence[_Signal]) -> Alert:
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
        good_until=_good_until(report, found),
        tests=tuple(sorted(found)),
        nights=(_night(report, found, "opened"),),
    )
    return _with_signals(alert, signals)


def _good_until(report: Report, found: Findings) -> datetime | None:
    """The newest night in which one of the tests was well still."""
    known = [row.good_until for row in report.rows if row.good_until and (TOTAL in found or row.test in found)]
    return max(known, default=None)


def _is_late(alert: Alert, report: Report, now: datetime) -> bool:
    """Whether newer nights have spoken already. One whose clock was ahead is no newer night."""
    return any(report.tonight.started < night.started <= now + CLOCK_AHEAD for night in alert.nights)


def _after_night(alert: Alert, report: Report, found: Findings, now: datetime) -> Alert:
    if alert.knows(report.tonight.run) or _is_late(alert, report, now):
        return _with_late_findings(alert, report, found)
    if found:
        return _slow_again(alert, report, found)
    if not alert.is_open:
        return alert
    rows = [row for row in report.rows if TOTAL in alert.tests or row.test in alert.tests]
    predates = _predates(alert, report)
    comparable = [row for row in rows if not (predates.get(row.test) or row.left_out or row.state is State.GONE)]
    if not comparable:
        return _incomparable(alert, report, rows)
    named = [
        row for row in comparable if row.test in alert.tests
    ]  # of the total, its own value counts, and not each row
    if not all(_recovered(alert, row) for row in named) or _total_still_slow(alert, report):
        return alert  # a test that failed or has no value tonight says nothing either way
    return _recovering(alert, report)


def _slow_again(alert: Alert, report: Report, found: Findings) -> Alert:
    """The alert with one more night that found something. A relapse is an episode of its own: what lies between was
    good."""
    changes: dict[str, object] = {"opened": min(alert.opened, report.tonight.started)}  # before a clock that was ahead
    note = ""
    if not alert.is_open:
        note = "reopened: it is back"
        until = alert.recovered_since or alert.closed
        assert until is not None
        changes = {
            "opened": report.tonight.started,
            "good_until": _good_until(report, found),
            "earlier": (*alert.earlier, Episode(since=alert.opened, until=max(until, alert.opened))),
        }
    return _with_night(
        alert,
        report,
        found,
        note=note,
        closed=None,
        closed_because="",
        recovered_since=None,
        recovered_nights=0,
        incomparable_nights=0,
        tests=tuple(sorted({*alert.tests, *found})),
        **changes,
    )


def _incomparable(alert: Alert, report: Report, rows: Sequence[Row]) -> Alert:
    """A changed workload, or a suite that leaves the tests out, ends the alert at once. Another environment, or a suite
    without them, may be that of one night."""
    final = bool(rows) and all(
        row.left_out or row.segment_ended_by in ("workload change", "unit change") for row in rows
    )
    count = alert.incomparable_nights + 1
    why = _why_not_comparable(rows)
    if not final and count < INCOMPARABLE_NIGHTS:
        note = f"not comparable ({why}), night {count} of {INCOMPARABLE_NIGHTS}"
        return _with_night(alert, report, {}, note=note, incomparable_nights=count)
    reason = f"closed: {why}, so its tests cannot be compared with the time before"
    return _with_night(alert, report, {}, note=reason, closed=report.tonight.started, closed_because=reason)


def _with_late_findings(alert: Alert, report: Report, found: Findings) -> Alert:
    """The alert with what has become known of one of its nights, or of one before its newest, by a shard that came
    late. That changes what the alert holds, and not whether it is open: newer nights have spoken since. It reaches
    back to that night only if none between was good."""
    known = next((night.findings for night in alert.nights if night.run == report.tonight.run), {})
    if not found.keys() - known.keys():
        return alert
    others = [night for night in alert.nights if night.run != report.tonight.run]
    note = next((night.note for night in alert.nights if night.run == report.tonight.run), "told late")
    nights = [*others, _night(report, {**found, **known}, note)]
    began = report.tonight.started
    if alert.good_until is not None and began <= alert.good_until:
        began = alert.opened
    return alert.model_copy(
        update={
            "nights": tuple(sorted(nights, key=lambda night: night.started)),
            "opened": min(alert.opened, began),
            "tests": tuple(sorted({*alert.tests, *found})),
        }
    )


def _recovering(alert: Alert, report: Report) -> Alert:
    count, since = alert.recovered_nights + 1, alert.recovered_since or report.tonight.started
    done = count >= RECOVERED_NIGHTS
    closings = report.confirmation.closings if report.confirmation is not None else None
    if done and closings is not None and alert.kind == "regression":
        return _closing(alert, report, next((one for one in closings if one.alert == alert.key), None))
    return _with_night(
        alert,
        report,
        {},
        note=f"recovered, night {count} of {RECOVERED_NIGHTS}" + (": closed" if done else ""),
        recovered_since=since,
        recovered_nights=count,
        incomparable_nights=0,
        closed=report.tonight.started if done else None,
        closed_because=f"{RECOVERED} for {RECOVERED_NIGHTS} nights" if done else "",
    )


def _closing(alert: Alert, report: Report, closing: Closing | None) -> Alert:
    """The alert after its third good night, with what pairs of the build from before it say; None: they are asked the
    next night."""
    night = f"recovered, night {RECOVERED_NIGHTS} of {RECOVERED_NIGHTS}"
    since = alert.recovered_since or report.tonight.started
    if closing is None:
        return _with_night(alert, report, {}, note=f"{night}; pairs are asked the next night", incomparable_nights=0)
    there = {one.test: f"{one.effect:+.1%}" for one in closing.asked if one.answer == "there"}
    pairs = sum(one.pairs for one in closing.asked)
    if closing.answer in ("there", "undecided"):
        told = "still there by pairs" if there else f"{pairs} pairs did not tell whether it is gone"
        return _with_night(
            alert,
            report,
            there,
            note=f"{night}, {told}",
            recovered_since=None,
            recovered_nights=0,
            incomparable_nights=0,
        )
    return _with_night(
        alert,
        report,
        {},
        note=f"{night}: closed",
        recovered_since=since,
        recovered_nights=RECOVERED_NIGHTS,
        incomparable_nights=0,
        closed=report.tonight.started,
        closed_because=f"{RECOVERED} for {RECOVERED_NIGHTS} nights, {_why_gone(closing, pairs)}",
    )


def _why_gone(closing: Closing, pairs: int) -> str:
    if closing.answer == "not measured":
        return "not confirmed by pairs, as no build from before it could be measured"
    if not pairs:
        return "tonight's build being the last good one"
    return f"and gone by {counted(pairs, 'pair')} of the build from before it and tonight's"


def _recovered(alert: Alert, row: Row) -> bool:
    if alert.kind == "failure":
        return row.state not in _FAILING and row.tonight is not None
    if row.change is None or row.state is State.SLOWER:
        return False
    confirmed = alert.effects.get(row.test)
    return confirmed is None or row.change < RECOVERED_SHARE * confirmed


def _total_still_slow(alert: Alert, report: Report) -> bool:
    return TOTAL in alert.tests and (report.total is None or report.total.state is State.SLOWER)


def _why_not_comparable(rows: Sequence[Row]) -> str:
    if rows and all(row.left_out for row in rows):
        return "left out on purpose"
    told = {str(row.state) for row in rows if row.state in (*_SEGMENT_ENDED, State.GONE)}
    told |= {row.segment_ended_by for row in rows if row.segment_ended_by and not row.left_out}
    return ", ".join(sorted(told) or [str(State.GONE)])


def _with_night(alert: Alert, report: Report, found: Findings, *, note: str, **changes: object) -> Alert:
    nights = (*alert.nights, _night(report, found, note))
    return alert.model_copy(update={**changes, "nights": (*nights[:1], *nights[1:][-NIGHTS_KEPT + 1 :])})


def _night(report: Report, found: Findings, note: str) -> AlertNight:
    tonight = report.tonight
    return AlertNight(
        run=tonight.run, started=tonight.started, build=tonight.build, findings=dict(sorted(found.items())), note=note
    )
