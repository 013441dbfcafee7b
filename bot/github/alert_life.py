"""How one night changes one alert: it goes on, recovers, cannot be compared any more, or is closed. Pure rules."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from baselines.confirming.state import Closing
from baselines.night_evidence import TOTAL
from baselines.report import Report, Row, State
from bot.github.alert import NIGHTS_KEPT, RECOVERED, Alert, AlertNight, Episode, Findings
from bot.github.night_findings import SEGMENT_ENDED, answers_in_doubt, predates_of, standing_of
from torchbenchmark.quantity import counted

RECOVERED_NIGHTS = 3  # in a row, before an alert is closed
INCOMPARABLE_NIGHTS = 3  # in a row: then the environment or the suite has changed for good, and the alert is over
CLOCK_AHEAD = timedelta(days=1)  # a night that starts later than this from now has a wrong clock


def good_until(report: Report, found: Findings) -> datetime | None:
    """The newest night in which one of the tests was well still."""
    known = [row.good_until for row in report.rows if row.good_until and (TOTAL in found or row.test in found)]
    return max(known, default=None)


def is_late(alert: Alert, report: Report, now: datetime) -> bool:
    """Whether newer nights have spoken already. One whose clock was ahead is no newer night."""
    return any(report.tonight.started < night.started <= now + CLOCK_AHEAD for night in alert.nights)


def after_night(alert: Alert, report: Report, found: Findings, now: datetime) -> Alert:
    if alert.knows(report.tonight.run) or is_late(alert, report, now):
        return _with_late_findings(alert, report, found)
    if found:
        return _slow_again(alert, report, found)
    if not alert.is_open:
        return alert
    rows = [row for row in report.rows if TOTAL in alert.tests or row.test in alert.tests]
    predates = predates_of(alert, report)
    gone = [row for row in rows if row.left_out or row.state is State.GONE or _has_no_baseline(row)]
    comparable = [row for row in rows if not (predates.get(row.test) or row in gone)]
    if not comparable:
        return _incomparable(alert, report, rows)
    named = [
        row for row in comparable if row.test in alert.tests
    ]  # of the total, its own value counts, and not each row
    standings = [standing_of(alert, row, report) for row in named]
    if "cleared" in standings:
        return _cleared(alert, report)
    if any(one != "recovered" for one in standings) or _total_still_slow(alert, report):
        return alert  # a test that failed or has no value tonight says nothing either way
    return _recovering(alert, report)


def _has_no_baseline(row: Row) -> bool:
    """Whether a test has a time tonight, and none of the nights from before the alert is left to hold it against."""
    return row.tonight is not None and row.baseline is None and row.state in (State.NEW, State.NOT_COMPARABLE)


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
            "good_until": good_until(report, found),
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
    nights = [*others, night_of(report, {**found, **known}, note)]
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


def _cleared(alert: Alert, report: Report) -> Alert:
    """The alert after a night whose figures were the machine's. They are not what is normal, so the night is no good
    one, and those before it are in no row with what comes."""
    asked = [one for test in alert.tests for one in answers_in_doubt(alert, test, report) if one.answer == "gone"]
    pairs = sum(one.pairs for one in asked)
    but = f"not by {counted(pairs, 'pair')}" if pairs else "tonight's build is that from before it"
    note = f"slower by the figures, but {but}: neither a slow night nor a good one"
    return _with_night(alert, report, {}, note=note, recovered_since=None, recovered_nights=0, incomparable_nights=0)


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


def _total_still_slow(alert: Alert, report: Report) -> bool:
    return TOTAL in alert.tests and (report.total is None or report.total.state is State.SLOWER)


def _why_not_comparable(rows: Sequence[Row]) -> str:
    if rows and all(row.left_out for row in rows):
        return "left out on purpose"
    told = {str(row.state) for row in rows if row.state in (*SEGMENT_ENDED, State.GONE)}
    told |= {row.segment_ended_by for row in rows if row.segment_ended_by and not row.left_out}
    if not told and any(_has_no_baseline(row) for row in rows):
        return "no night from before it is left"
    return ", ".join(sorted(told) or [str(State.GONE)])


def _with_night(alert: Alert, report: Report, found: Findings, *, note: str, **changes: object) -> Alert:
    nights = (*alert.nights, night_of(report, found, note))
    return alert.model_copy(update={**changes, "nights": (*nights[:1], *nights[1:][-NIGHTS_KEPT + 1 :])})


def night_of(report: Report, found: Findings, note: str) -> AlertNight:
    tonight = report.tonight
    return AlertNight(
        run=tonight.run, started=tonight.started, build=tonight.build, findings=dict(sorted(found.items())), note=note
    )
