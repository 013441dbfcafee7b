"""How what was measured again changes the report of a night: it decides, and the limits alone decide nothing."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from baselines.confirming.state import ClassState, NightOutcome, test_of
from baselines.report import Report, State
from baselines.rolling import Mask
from baselines.series import NightSummary, missing_shards_text
from bot.github.alert import Alert
from bot.github.night_findings import standing_of
from torchbenchmark.quantity import counted, few

LONGEST_UNCONFIRMED = timedelta(days=7)
_INSTANT = timedelta(microseconds=1)


def waiting_masks(state: ClassState) -> dict[str, list[Mask]]:
    """Per test the nights of a change that is confirmed and not filed yet: no baseline, as those of an alert."""
    found: dict[str, list[Mask]] = {}
    for name, one in state.series.items():
        if one.pending is not None:
            found.setdefault(test_of(name), []).append(Mask(one.pending.onset.low, since_open=False))
    return found


def unconfirmed_masks(state: ClassState, tonight: NightSummary) -> dict[str, list[Mask]]:
    """Per test the nights since the last one that was confirmed: whether they were slow, nobody has asked, so they are
    no baseline yet. After some nights of that the limits take them as they are."""
    if state.last_night is None or state.last_night >= tonight.started:
        return {}
    since = max(state.last_night + _INSTANT, tonight.started - LONGEST_UNCONFIRMED)
    return {test: [Mask(since, since_open=False)] for test in tonight.tests}


def with_confirmation(report: Report, outcome: NightOutcome) -> Report:
    """The report with what was measured again in it: that decides, and the limits alone decide nothing. Where nothing
    could be measured, what they say is told, and nothing slower is filed."""
    report = report.model_copy(update={"confirmation": outcome})
    if report.verdict in ("broken", "baseline made"):
        return report
    if outcome.not_measured:
        reason = f"{report.reason}; nothing slower is confirmed, as nothing was measured again: {outcome.not_measured}"
        return report.model_copy(update={"reason": reason})
    failing, machine, flaky = _failing(report, outcome)
    slower = sorted({one.test for one in outcome.confirmed if one.kind == "regression"} | _slower_filed(outcome))
    gone = set(map(test_of, outcome.without_base))
    unknown = [test for test in report.tests(State.SLOWER) if test in gone]
    heard = {one.test for one in outcome.tried if one.pairs}
    unheard = {one.test for one in outcome.tried if not one.pairs} - heard - set(slower)
    unheard &= set(report.tests(State.SLOWER))
    told = []
    if failing:
        told.append(f"newly failing: {few(failing)}")
    if machine:
        told.append(f"failing, and with the build from before tonight too: {few(machine)}")
    if slower:
        told.append(f"confirmed slower: {few(slower)}")
    if unknown:  # it may be so, and nobody can say: no issue is filed for it, but the night is no clean one
        told.append(
            f"slower by the limits, and not to be confirmed, as no build from before can be had: {few(unknown)}"
        )
    if unheard:
        told.append(f"slower by the limits, and no pair of it could be measured: {few(sorted(unheard))}")
    if told:
        return report.model_copy(update={"verdict": "regression", "reason": "; ".join(told)})
    reason = _none_confirmed(outcome)
    if not outcome.tried and report.baseline is not None and report.baseline.build == report.tonight.build:
        reason += ", the build is that of the last good night"
    reason += f"; flaky, as fresh processes do not agree: {few(flaky)}" if flaky else ""
    return report.model_copy(update={"verdict": "clean", "reason": reason})


def _none_confirmed(outcome: NightOutcome) -> str:
    """What a night comes to that confirms nothing: what was measured, and what is suspected and was not."""
    measured = sum(one.pairs > 0 for one in outcome.tried)
    heard = {one.test for one in outcome.tried if one.pairs}
    left = ({one.test for one in outcome.tried} | set(map(test_of, outcome.not_tried))) - heard
    resting = set(map(test_of, outcome.resting)) - heard - left
    if measured:
        told = [f"{counted(measured, 'suspect')} measured again, none confirmed"]
    else:
        told = ["nothing measured again" if left or resting else "nothing to measure again"]
    if left:
        told.append(f"suspected and not measured, as no pairs were left or none ended well: {few(sorted(left))}")
    if resting:
        told.append(f"suspected still, and resting as pairs did not show it lately: {few(sorted(resting))}")
    return "; ".join(told)


def _failing(report: Report, outcome: NightOutcome) -> tuple[list[str], list[str], list[str]]:
    """Of the tests that fail since lately: those that do, those that fail with the build from before too, and those of
    which fresh processes do not agree."""
    verdicts = {one.test: one for one in outcome.exact if one.kind == "newly failing"}
    tests = sorted({*report.tests(State.NEWLY_FAILING), *verdicts})
    machine = [test for test in tests if test in verdicts and verdicts[test].verdict == "not the build"]
    flaky = [test for test in tests if test in verdicts and verdicts[test].verdict == "flaky"]
    waiting = [test for test in report.noisy if test in verdicts and not verdicts[test].settled]  # called flaky
    return [test for test in tests if test not in (*machine, *flaky, *waiting)], machine, flaky


def still_slow(report: Report, alerts: Collection[Alert]) -> Report:
    """A night whose open alerts found their tests slow is no clean one, though it found nothing new. What their pairs
    said of figures in doubt is told."""
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
    if report.verdict == "clean" and found:
        report = report.model_copy(update={"verdict": "regression", "reason": f"still slower or failing: {few(found)}"})
    cleared = sorted(
        {
            row.test
            for alert in alerts
            for row in report.rows
            if row.test in alert.tests and standing_of(alert, row, report) == "cleared"
        }
    )
    if not cleared or report.verdict == "broken":
        return report
    told = f"{report.reason}; slower by the limits, and not by pairs of the build from before: {few(cleared)}"
    return report.model_copy(update={"reason": told})


def without_shards(report: Report, missing: Sequence[str]) -> Report:
    """A night that is not whole is no clean one, and whatever it found it is told."""
    if not missing or report.verdict == "broken":
        return report
    told = missing_shards_text(missing)
    if report.verdict == "regression":
        return report.model_copy(update={"reason": f"{report.reason}; {told}"})
    return report.model_copy(update={"verdict": "broken", "reason": f"{told}; {report.reason}"})


def _slower_filed(outcome: NightOutcome) -> set[str]:
    return {test for filed in outcome.filed if filed.kind == "regression" for test in filed.effects()}
