"""What follows the measuring of a night: compare, score, keep the alerts, file, report.

Each step can be repeated for the same run: nothing is stored twice and no second issue is filed.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from rich.panel import Panel
from rich.text import Text

from baselines.canaries import CanaryMove
from baselines.confirming.state import NightOutcome
from baselines.confirming.stored_state import read_state, set_concluded
from baselines.history import add_night, read_nights
from baselines.noisy import NoisyTest
from baselines.pins import pinned_night, read_pins, set_pin
from baselines.policy import Policy
from baselines.report import Report
from baselines.report_table import print_report
from baselines.rolling import Mask
from baselines.runs import load_run, run_prefix
from baselines.series import NightSummary, summarise
from baselines.store import Store
from bot.alert_issue import issue_of
from bot.canary import look_at_canaries
from bot.config import NightlyConfig
from bot.confirming.report import still_slow, unconfirmed_masks, waiting_masks, with_confirmation, without_shards
from bot.filing import file_all
from bot.github.alert import Alert, masks
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.alerts import RELAPSE, apply_report
from bot.github.announcements import announce
from bot.github.issue import Filed, Tracker
from bot.github.merging import merge_same_culprits
from bot.notifying import notify
from bot.pages.issue import (
    render_announcement,
    render_evidence,
    reproduce_commands,
    side_by_side_command,
)
from bot.recovering import recover_alerts
from bot.triage.calling_noise import noisy_tests
from regression_detector import detect, read_history
from score.inputs import find_reference
from score.taxonomy import published_taxonomy
from score.v1 import ScoreV1, score_v1
from torchbenchmark.errors import SentinelError
from torchbenchmark.formats import read_latencies
from torchbenchmark.formats.run_records import measurements_of
from torchbenchmark.records import Run
from torchbenchmark.terminal import console

SCHEMA = 1
_NO_NEWS = ("unchanged", "left closed", "left open", "left: it is newer", "to be filed", "to be closed if open")
REFERENCE_PIN = "reference"  # the run that scores 1000 where the configuration names no reference


@dataclass(frozen=True)
class JudgedNight:
    """A stored night held against those before it; nothing is measured again yet, and nothing filed."""

    tonight: NightSummary
    report: Report
    alerts: tuple[Alert, ...]  # as they were
    canaries: CanaryMove | None

    @property
    def canary(self) -> str:
        """Why the frozen build says that the environment moved; empty: it does not."""
        return self.canaries.sentence if self.canaries is not None and self.canaries.moved else ""


@dataclass(frozen=True)
class Scored:
    """The night's score, if there is something to score against."""

    score: ScoreV1 | None
    reference: str  # what 1000 is
    problem: str = ""


class Bisection(Protocol):
    """What became of an alert that was bisected."""

    @property
    def alert(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def told(self) -> str: ...


# Measures again what a night suspects, given why the frozen build says that the environment moved, if it does; None of
# a night that has nothing to measure.
Confirm = Callable[[NightSummary, Report, str], NightOutcome | None]
# Looks for the commits of the open alerts, writes them there, and says what became of each.
Bisect = Callable[[NightSummary, tuple[Alert, ...]], Sequence[Bisection]]
# The report with what pairs say of the alerts that it would close.
ConfirmClosings = Callable[[NightSummary, Report, tuple[Alert, ...], datetime], Report]
# The alerts with what got slower inside the tests of those that are new; the last argument gives their evidence.
Attribute = Callable[[NightSummary, Report, tuple[Alert, ...], Callable[[Alert], str]], tuple[Alert, ...]]


def conclude(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    run: Run,
    tracker: Tracker,
    seconds: float = 0.0,
    confirm: Confirm | None = None,
    confirm_closings: ConfirmClosings | None = None,
    attribute: Attribute | None = None,
    bisect: Bisect | None = None,
    now: datetime | None = None,
) -> int:
    """Everything after the storing of a run (which took `seconds` with its measuring). Returns the exit code.

    With `confirm` only what it confirms twice is filed; without, what the limits say. With `confirm_closings` an alert
    is closed only when pairs do not show its change any more; with `attribute` what is filed as slower is profiled; and
    with `bisect` the commits of open alerts are looked for when all is filed, and filed then.

    Is repeated when another shard of the run has come: the run is then all that is stored of it. A night before that
    was killed when it was confirmed and not filed yet is concluded first.
    """
    recover_alerts(store, tracker, run.header.suite, run.header.machine_class)
    if confirm is not None:
        conclude_left(config, store, policy, run, tracker)
    began, key = time.monotonic(), run_prefix(run.header)
    judged = judge_night(config, store, policy, key)
    tonight, report, canaries = judged.tonight, judged.report, judged.canaries
    if confirm is not None and report.verdict != "broken":
        outcome = confirm(tonight, report, judged.canary)
        report = report if outcome is None else with_confirmation(report, outcome)
    now = now or datetime.now(UTC)
    if confirm_closings is not None:
        report = confirm_closings(tonight, report, judged.alerts, now)
    scored = score(config, store, run, tonight)
    pin_first_valid_night(store, tonight, report, policy)

    def show(alert: Alert) -> str:
        return _evidence(alert, config, report, run, scored)

    def change(before: tuple[Alert, ...]) -> tuple[Alert, ...]:
        after = apply_report(before, report, now=now, show=show, file=config.file)
        return merge_same_culprits(announce(after, report, config.file, show), now)

    alerts = change_alerts(store, tonight.suite, tonight.machine_class, change)
    set_concluded(store, tonight.suite, tonight.machine_class, tonight.started)
    if attribute is not None:
        alerts = attribute(tonight, report, alerts, show)
    if report.confirmation is not None:
        report = without_shards(still_slow(report, alerts), tonight.missing_shards)
    filed = file_alerts(tracker, alerts, config, tonight, now)
    alerts = remember_filed(store, tonight, filed, now)
    bisections = bisect(tonight, alerts) if bisect is not None and report.verdict != "broken" else ()
    if any(one.verdict for one in bisections):
        filed = _filed_again(tracker, store, config, tonight, now, filed)
    notify(config, store, read_alerts(store, tonight.suite, tonight.machine_class), now)
    print_report(report, verdict=False)  # the summary ends with it
    if canaries is not None:
        console.print(Text(f"canaries: {canaries.sentence}"))
    spent = seconds + time.monotonic() - began
    _write_summary(config.work / "nightly.json", report, scored, filed, run, key, spent, canaries, bisections)
    _print_summary(report, scored, filed, config, bisections, _notes_of(alerts, tonight.run))
    return report.exit_code


def conclude_left(config: NightlyConfig, store: Store, policy: Policy, run: Run, tracker: Tracker) -> None:
    """Conclude the newest night before this one by what it came to, if that has not reached the alerts: its levels are
    what is normal by now, so that no later night would find it again. An alert that it would have asked pairs about
    before it closes is left to this night."""
    header = run.header
    state, _ = read_state(store, header.suite, header.machine_class)
    left = state.outcome
    if left is None or left.night >= header.started or state.concluded == left.night:
        return
    if left.closings is None:
        left = left.model_copy(update={"closings": ()})
    nights = read_nights(store, header.suite, header.machine_class, 1, before=left.night + timedelta(microseconds=1))
    try:
        for night in nights:
            if night.started == left.night:
                conclude(config, store, policy, load_run(store, night.key), tracker, confirm=lambda *_: left)
    except SentinelError as problem:  # it stops no other night
        console.print(f"the night of {left.night:%Y-%m-%d %H:%M} UTC cannot be concluded: {problem}", markup=False)


def judge_night(config: NightlyConfig, store: Store, policy: Policy, key: str) -> JudgedNight:
    """Put a stored run among the nights of its class, and hold it against them."""
    tonight = add_night(store, key)
    alerts = read_alerts(store, tonight.suite, tonight.machine_class)
    state, _ = read_state(store, tonight.suite, tonight.machine_class)
    canaries = look_at_canaries(config, store, policy, tonight, state.environment_since)
    masked = joined_masks(masks(alerts, tonight.started), waiting_masks(state))
    if config.confirm:
        masked = joined_masks(masked, unconfirmed_masks(state, tonight))
    report = judge(store, tonight, policy, masked, canaries, noisy_tests(alerts, tonight.started))
    return JudgedNight(tonight, report, alerts, canaries)


def joined_masks(one: Mapping[str, list[Mask]], other: Mapping[str, list[Mask]]) -> dict[str, list[Mask]]:
    return {test: [*one.get(test, ()), *other.get(test, ())] for test in one.keys() | other.keys()}


def judge(
    store: Store,
    tonight: NightSummary,
    policy: Policy,
    masked: Mapping[str, list[Mask]],
    canaries: CanaryMove | None = None,
    noisy: Mapping[str, NoisyTest] | None = None,
) -> Report:
    """Compare tonight with the stored nights before it."""
    history = read_history(store, tonight, policy, masked, tonight.started)
    try:
        pinned = pinned_night(store, tonight.suite, tonight.machine_class)
    except SentinelError as problem:
        console.print(f"no comparison with the pinned run: {problem}", markup=False, style="yellow")
        pinned = None
    return detect(tonight, history, policy, masks=masked, pinned=pinned, canaries=canaries, noisy=noisy)


def score(config: NightlyConfig, store: Store, run: Run, tonight: NightSummary) -> Scored:
    """The V1 score of the run. What is wrong with its reference is told, and stops nothing else."""
    try:
        reference, name = _reference(config, store, tonight)
        if reference is None:
            return Scored(None, "", "the first valid night becomes the reference, 1000")
        results = measurements_of(run, "tonight").latencies
        return Scored(score_v1(reference, results, published_taxonomy(config.models).domain_of), name)
    except SentinelError as problem:
        return Scored(None, "", str(problem))


def _reference(config: NightlyConfig, store: Store, tonight: NightSummary) -> tuple[Mapping[str, float] | None, str]:
    """Times that score 1000, and whose they are: the configured reference, or else the pinned first valid night."""
    if config.reference is not None:
        return read_latencies(find_reference(config.reference)), config.reference
    pins = read_pins(store, tonight.suite, tonight.machine_class)
    if REFERENCE_PIN not in pins:
        return None, ""
    pinned = load_run(store, pins[REFERENCE_PIN].run)
    then = summarise(pinned)
    # A test whose workload changed since is another test: its old time is no reference for it.
    times = {
        test: seconds
        for test, seconds in measurements_of(pinned, pins[REFERENCE_PIN].run).latencies.items()
        if test not in tonight.tests or tonight.tests[test].workload == then.tests[test].workload
    }
    return times, f"the run of {then.started:%Y-%m-%d}, {then.build.version}"


def pin_first_valid_night(store: Store, tonight: NightSummary, report: Report, policy: Policy) -> None:
    """The first night that is fit for a baseline becomes the reference; it stays until somebody moves the pin."""
    if tonight.coverage < policy.min_coverage or report.verdict in ("regression", "broken"):
        return
    if REFERENCE_PIN not in read_pins(store, tonight.suite, tonight.machine_class):
        set_pin(store, REFERENCE_PIN, tonight.key)
        console.print(f"pinned as {REFERENCE_PIN}, which scores 1000: {tonight.key}", markup=False)


def file_alerts(
    tracker: Tracker, alerts: tuple[Alert, ...], config: NightlyConfig, tonight: NightSummary, now: datetime
) -> list[Filed]:
    """File every alert that is open or was closed lately: the filing of a night before may have failed. What is filed
    already, unchanged, stays as it is. Returns what came of those that tonight speaks of, and of what was changed."""
    current = [
        alert for alert in alerts if alert.closed is None or now - alert.closed <= RELAPSE or alert.knows(tonight.run)
    ]
    known = {alert.key for alert in current if alert.knows(tonight.run)}
    filed = file_all(tracker, [issue_of(alert, config, now) for alert in current])
    return [one for one in filed if one.key in known or one.effect not in _NO_NEWS]


def remember_filed(store: Store, tonight: NightSummary, filed: Sequence[Filed], now: datetime) -> tuple[Alert, ...]:
    """All alerts; those that were handed to the tracker say so, and where their issue is, if that is known."""
    where = {one.key: one.where if one.where.startswith(("https://", "http://")) else "" for one in filed}

    def remember(alert: Alert) -> Alert:
        if alert.key not in where or (alert.filed is not None and where[alert.key] in ("", alert.issue)):
            return alert
        known = {"filed": alert.filed or now, "issue": where[alert.key] or alert.issue}
        return alert.model_copy(update=known)

    return change_alerts(store, tonight.suite, tonight.machine_class, lambda alerts: tuple(map(remember, alerts)))


def _evidence(alert: Alert, config: NightlyConfig, report: Report, run: Run, scored: Scored) -> str:
    if alert.is_announcement:
        return render_announcement(alert.kind, alert.tests, alert.nights[-1].findings, alert.intervals, report)
    policy = config.policy if isinstance(config.policy, str) else None
    reproduce = reproduce_commands(run.header, config.suite, alert.tests, config.store, policy, alert.opened)
    pairs = side_by_side_command(run.header, config.suite, alert.tests) if alert.kind == "regression" else ""
    score = scored.score.total if scored.score else None
    return render_evidence(
        alert.kind, alert.tests, report, reproduce, score, scored.reference, alert.intervals, pairs, alert.inside
    )


def _filed_again(
    tracker: Tracker, store: Store, config: NightlyConfig, tonight: NightSummary, now: datetime, filed: list[Filed]
) -> list[Filed]:
    """File what bisecting has added, and what turns out one by it. Where that fails, the next night files it."""
    known = {one.key for one in filed}
    try:
        alerts = change_alerts(
            store, tonight.suite, tonight.machine_class, lambda alerts: merge_same_culprits(alerts, now)
        )
        return [*filed, *(one for one in file_alerts(tracker, alerts, config, tonight, now) if one.key not in known)]
    except SentinelError as problem:
        console.print(f"what was bisected is not filed yet: {problem}", markup=False, style="yellow")
        return filed


def _notes_of(alerts: Sequence[Alert], run: str) -> dict[str, str]:
    """By key, what the night has made of alerts: recovered, closed, reopened."""
    return {alert.key: night.note for alert in alerts for night in alert.nights if night.run == run and night.note}


def _print_summary(
    report: Report,
    scored: Scored,
    filed: list[Filed],
    config: NightlyConfig,
    bisections: Sequence[Bisection],
    notes: Mapping[str, str],
) -> None:
    lines = Text()
    if scored.score:
        coverage = scored.score.coverage
        lines.append(
            f"score {scored.score.total:.1f}: the published Score V1, on wall latency; no verdict hangs on it\n"
            f"  1000 is {scored.reference}; "
            f"over {len(coverage.scored)} of {coverage.reference} tests of the reference\n"
        )
    else:
        lines.append(f"score: none, {scored.problem}\n")
    for issue in filed:
        note = f"  {notes[issue.key]}\n" if issue.key in notes else ""
        lines.append(f"issue {issue.effect}: {issue.title}\n{note}  {issue.where}\n")
    if not filed:
        lines.append("no issue to file\n")
    for one in bisections:
        lines.append(f"alert {one.alert}, {one.told}\n")
    lines.append(f"details: {config.work / 'nightly.json'}")
    panel = Panel(lines, title=f"nightly {report.suite}, {report.machine_class}")
    console.print(panel, soft_wrap=False)  # a panel's long lines would be cut
    console.print(Text(f"verdict: {report.verdict}: {report.reason}", style="bold"))


def _write_summary(
    path: Path,
    report: Report,
    scored: Scored,
    filed: list[Filed],
    run: Run,
    key: str,
    seconds: float,
    canaries: CanaryMove | None,
    bisections: Sequence[Bisection] = (),
) -> None:
    summary: dict[str, Any] = {
        "kind": "nightly",
        "schema": SCHEMA,
        "verdict": report.verdict,
        "reason": report.reason,
        "exit_code": report.exit_code,
        "run": run.header.run,
        "key": key,
        "build": run.header.build.id,
        "seconds": round(seconds, 1),
        "planned": len(run.header.plan),
        "delivered": {str(status): count for status, count in run.counts().items()},
        "score": scored.score.as_json() if scored.score else None,
        "score_reference": scored.reference,
        "score_problem": scored.problem,
        "issues": [
            {"key": issue.key, "title": issue.title, "where": issue.where, "effect": issue.effect} for issue in filed
        ],
        "bisections": [{"alert": one.alert, "verdict": one.verdict, "told": one.told} for one in bisections],
        "canaries": canaries.as_json() if canaries else None,
        "report": report.model_dump(mode="json", by_alias=True),
    }
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    scratch.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    scratch.replace(path)
