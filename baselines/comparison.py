"""One test of a night against the nights before it: its row of the report, and its counts that moved."""

import math
from datetime import datetime

from baselines.night_evidence import Evidence, has_test, judged_channel
from baselines.policy import Judged
from baselines.report import CountChange, Row, State
from baselines.rolling import Baseline, ValidNights, is_usable, rolling_baseline
from baselines.series import (
    NightSummary,
    TestSummary,
)
from torchbenchmark.channels import CHANNELS
from torchbenchmark.records import Status

ROUNDING = 1e-9  # 1.07 / 1.0 - 1 is a little more than 0.07; a change of exactly the limit is not above it
_LARGEST_RATIO = 1e9  # no build is that much slower or faster: one side is not what it says


def compare(test: str, evidence: Evidence) -> Row:
    """The row of a test that is planned tonight."""
    now, before, alert = evidence.tonight.tests[test], evidence.before(test), evidence.alert(test)
    if now.absent:
        return Row(test=test, state=State.NOT_COMPARABLE, reason=now.reason, alert=alert)
    told = f"{now.status or 'missing'}: {now.reason}"
    if now.failed:
        failed_before = before is not None and before.failed
        state = State.NEWLY_FAILING if before and before.ok else State.STILL_FAILING if failed_before else State.NEW
        return Row(test=test, state=state, reason=told, alert=alert, good_until=evidence.last_ran(test))
    if not now.ok:
        state = State.NOT_COMPARABLE if before is None or not before.ok else State.GONE
        return Row(test=test, state=state, reason=told, alert=alert, left_out=now.status is Status.SKIPPED)
    judged = judged_channel(now, evidence.tonight.device, evidence.policy)
    if judged is None:
        wanted = ", ".join(one.channel for one in evidence.policy.for_device(evidence.tonight.device))
        reason = f"tonight has none of the judged channels ({wanted})"
        return Row(test=test, state=State.NOT_COMPARABLE, reason=reason, alert=alert)
    return _compare_values(test, judged, evidence).model_copy(update={"alert": alert})


def _compare_values(test: str, judged: Judged, evidence: Evidence) -> Row:
    """The row of a test that ended ok and has a judged channel."""
    summary = evidence.tonight.tests[test].channels[judged.channel]
    tonight, baseline = summary.location(judged.statistic), evidence.baseline(test, *judged.pair)
    row = Row(
        test=test,
        state=State.NOT_COMPARABLE,
        channel=judged.channel,
        statistic=judged.statistic,
        unit=summary.unit,
        baseline=baseline.value,
        tonight=tonight if math.isfinite(tonight) else None,
        nights=baseline.nights,
        others=_other_changes(test, judged.channel, evidence),
        segment_since=_segment_since(baseline, evidence.tonight),
        segment_ended_by=baseline.segment.ended_by,
        good_until=baseline.newest,
    )
    if not is_usable(judged.channel, tonight):
        return row.model_copy(update={"reason": f"tonight's {judged.channel} is {tonight:g}, not a positive number"})
    row = row.model_copy(update={"pin_change": _pin_change(test, judged, evidence)})
    before = evidence.before(test)
    fixed = before is not None and before.failed
    if baseline.value is None:
        state, reason = _without_baseline(test, baseline, evidence, fixed)
        return row.model_copy(update={"state": state, "reason": reason})
    change = _change(judged.channel, baseline.value, tonight)
    if change is None:
        return row.model_copy(update={"reason": "tonight and baseline are out of all proportion; check the unit"})
    noisy, limit = evidence.noisy.get(test), evidence.policy.per_test
    moved = moved_by(change, limit if noisy is None else noisy.widened(limit))
    # A test that is back but slow is a regression that its failure hid.
    state = State.FIXED if fixed and moved is not State.SLOWER else moved
    return row.model_copy(update={"state": state, "change": change, "reason": _was_failing(before) if fixed else ""})


def _segment_since(baseline: Baseline, tonight: NightSummary) -> datetime | None:
    if not baseline.segment.ended_by:
        return None
    return baseline.segment.nights[0].started if baseline.segment.nights else tonight.started


def _without_baseline(test: str, baseline: Baseline, evidence: Evidence, fixed: bool) -> tuple[State, str]:
    segment, seen = baseline.segment, [night for night in evidence.history if has_test(night, test)]
    if all(night.tests[test].status is not None and night.tests[test].status.expected for night in seen):
        return State.NEW, "skipped or unsupported until now" if seen else ""
    if fixed:
        return State.FIXED, f"{_was_failing(evidence.before(test))}; {baseline.reason}"
    if segment.ended_by and not any(has_test(night, test) for night in segment.nights):
        states = {"workload change": State.WORKLOAD_CHANGE, "environment change": State.ENVIRONMENT_CHANGE}
        return states.get(segment.ended_by, State.NOT_COMPARABLE), segment.reason
    return State.NOT_COMPARABLE, baseline.reason


def _was_failing(before: TestSummary | None) -> str:
    return f"was {before.status or 'missing'}: {before.reason}" if before else ""


def _change(channel: str, baseline: float, tonight: float) -> float | None:
    """Tonight over baseline, less 1; of a channel where higher is better the inverse, so that positive is slower."""
    if baseline == 0 or tonight == 0:  # a count
        return 0.0 if baseline == tonight else None
    ratio = tonight / baseline if CHANNELS[channel].better == "lower" else baseline / tonight
    return ratio - 1 if 1 / _LARGEST_RATIO < ratio < _LARGEST_RATIO else None


def moved_by(change: float, limit: float) -> State:
    """Slower if above the limit; faster if the inverse ratio is, so that undoing a regression is an improvement."""
    if change > limit + ROUNDING:
        return State.SLOWER
    return State.FASTER if 1 / (1 + change) - 1 > limit + ROUNDING else State.UNCHANGED


def _other_changes(test: str, judged_channel: str, evidence: Evidence) -> dict[str, float]:
    changes = {}
    for name, summary in evidence.tonight.tests[test].channels.items():
        # A rate is the inverse of a time that is shown, and its change would read the wrong way round beside it.
        if name == judged_channel or name not in CHANNELS or CHANNELS[name].exact or CHANNELS[name].better == "higher":
            continue
        tonight, baseline = summary.location("median"), evidence.baseline(test, name, "median").value
        if baseline is None or not is_usable(name, tonight):
            continue
        if (change := _change(name, baseline, tonight)) is not None:
            changes[name] = change
    return changes


def count_changes(test: str, evidence: Evidence) -> list[CountChange]:
    changes = []
    for name, summary in evidence.tonight.tests[test].channels.items():
        if name in CHANNELS and CHANNELS[name].exact:
            tonight, baseline = summary.location("median"), evidence.baseline(test, name, "median", nights=1).value
            if baseline is not None and is_usable(name, tonight) and tonight != baseline:
                changes.append(CountChange(test=test, channel=name, baseline=baseline, tonight=tonight))
    return changes


def _pin_change(test: str, judged: Judged, evidence: Evidence) -> float | None:
    """Against the pinned night; None also if workload, unit or environment are not what they were then."""
    if evidence.pinned is None:
        return None
    valid = ValidNights(nights=1, min_coverage=0)
    pinned = rolling_baseline(evidence.tonight, (evidence.pinned,), test, *judged.pair, valid).value
    tonight = evidence.tonight.tests[test].channels[judged.channel].location(judged.statistic)
    return None if pinned is None else _change(judged.channel, pinned, tonight)
