"""The nightly: measure, store, detect, score, file, report. Each step can be repeated: a killed night goes on where it
was, stores nothing twice and files no second issue."""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.panel import Panel
from rich.text import Text

from baselines.history import add_night
from baselines.pins import pinned_night, read_pins, set_pin
from baselines.policy import Policy, load_policy
from baselines.report import Report
from baselines.report_table import print_report
from baselines.rolling import Mask
from baselines.runs import load_run, store_run
from baselines.series import NightSummary, summarise
from baselines.store import Store, open_store
from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.alerts import Alert, apply_report, masks
from bot.github.issue import Filed, Issue, Tracker
from bot.github.outbox import Outbox
from bot.pages.issue import IssueFacts, NightLine, render_body, render_title, reproduce_commands
from regression_detector import detect, read_history
from score.inputs import find_reference
from score.taxonomy import published_taxonomy
from score.v1 import ScoreV1, score_v1
from torchbenchmark.cli import TerminalReporter, end_children_on_termination, print_run
from torchbenchmark.errors import SentinelError
from torchbenchmark.formats import read_latencies
from torchbenchmark.formats.run_records import measurements_of
from torchbenchmark.records import Run, read_run
from torchbenchmark.registry import load_suite
from torchbenchmark.run_file import RunFile
from torchbenchmark.runner import OtherGround, RunRequest, resume_run, start_run
from torchbenchmark.terminal import console

SCHEMA = 1
SAME_NIGHT = timedelta(hours=12)  # an interrupted run that is older is not tonight's
REFERENCE_PIN = "reference"  # the run that scores 1000 where the configuration names no reference
LABELS = {"regression": ("torchbench", "performance regression"), "failure": ("torchbench", "newly failing")}


@dataclass(frozen=True)
class Scored:
    """The night's score, if there is something to score against."""

    score: ScoreV1 | None
    reference: str  # what 1000 is
    problem: str = ""


def register(app: typer.Typer) -> None:
    app.command("nightly")(nightly_command)


def nightly_command(
    config: Annotated[Path, typer.Option(help="YAML of the nightly; docs/nightly.md describes it.")] = Path(
        "nightly.yaml"
    ),
) -> None:
    """Measure tonight's build, compare it with the nights before, and file what got slower.

    Exit code 0: clean, 1: regression, 2: broken.
    """
    end_children_on_termination()
    raise typer.Exit(run_nightly(load_config(config)))


def run_nightly(config: NightlyConfig) -> int:
    """One night from start to end. Returns the exit code.

    A night that was killed is finished first. If it is so old that tonight is another night, tonight follows.
    """
    policy = load_policy(config.policy)
    store = open_store(config.store)
    with alone(config.work):
        return _run_alone(config, policy, store)


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """One nightly at a time in a work folder; the system drops the lock of one that dies."""
    work.mkdir(parents=True, exist_ok=True)
    with open(work / ".lock", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BotError(f"{work}: another nightly is running there; wait for it, or name another `work`") from error
        yield


def _run_alone(config: NightlyConfig, policy: Policy, store: Store) -> int:
    file = config.work / "tonight.jsonl"
    began = time.monotonic()
    left = _interrupted(file)
    if left is not None and not left.missing:
        console.print(f"finishing the night of {left.header.started:%Y-%m-%d %H:%M} UTC: measured, but not filed")
        code = conclude(config, store, policy, left, store_run(store, left), began)
        file.unlink(missing_ok=True)
        if not _is_of_another_night(left):
            return code
        began = time.monotonic()
    run = measure(config, file)
    print_run(run)
    code = conclude(config, store, policy, run, store_run(store, run), began)
    file.unlink(missing_ok=True)  # last: until here a killed night finds its run again and repeats what follows it
    return code


def conclude(config: NightlyConfig, store: Store, policy: Policy, run: Run, stored: str, began: float) -> int:
    """Everything after the measuring and storing (`stored`: the key of the run or of one of its shards).

    Can be repeated for the same run without filing anything twice, and is when another of its shards has come.
    """
    key = stored.rpartition("/")[0]
    tonight = add_night(store, key)
    alerts = read_alerts(store, tonight.suite, tonight.machine_class)
    report = judge(store, tonight, policy, masks(alerts))
    scored = score(config, store, run, tonight)
    pin_first_valid_night(store, tonight, key, policy)
    alerts = change_alerts(store, tonight.suite, tonight.machine_class, lambda before: apply_report(before, report))
    filed = file_alerts(config, alerts, report, run, scored)
    print_report(report, verdict=False)  # the summary ends with it
    _write_summary(config.work / "nightly.json", report, scored, filed, run, key, time.monotonic() - began)
    _print_summary(report, scored, filed, config)
    return report.exit_code


def measure(config: NightlyConfig, file: Path) -> Run:
    """Tonight's run: a new one, or the rest of one that was killed tonight on this build and machine."""
    request = RunRequest(
        suite=load_suite(config.suite),
        device=config.device,
        rounds=config.rounds,
        processes=config.processes,
        subject=config.subject,
        threads=config.threads,
        budget_s=config.budget_s,
        timeout_s=config.timeout_s,
        memory_limit=None if config.memory_limit_mib is None else config.memory_limit_mib * 2**20,
        model_folders=config.models,
        **({} if config.python is None else {"python": config.python}),
    )
    left = _interrupted(file)
    with TerminalReporter() as reporter:
        if left is not None and _is_of_another_night(left):
            _set_aside(file, f"begun {left.header.started:%Y-%m-%d %H:%M} UTC")
        elif left is not None:
            try:
                return resume_run(file, request.python, reporter, retry_failed=False)
            except OtherGround as problem:
                _set_aside(file, str(problem))
        return start_run(request, file, reporter)


def _interrupted(file: Path) -> Run | None:
    """The run that a killed night left behind."""
    return read_run(file) if file.exists() and file.stat().st_size > 0 else None


def _is_of_another_night(run: Run) -> bool:
    return datetime.now(UTC) - run.header.started > SAME_NIGHT


def _set_aside(file: Path, why: str) -> None:
    """Keep an interrupted run that cannot go on, with its journal, under another name."""
    RunFile(file).close()  # refuses if it is not interrupted at all, but another process's run
    aside = file.with_name(f"abandoned-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.jsonl")
    file.replace(aside)
    journal = file.with_name(f"{file.name}.journal")
    if journal.exists():
        journal.replace(aside.with_name(f"{aside.name}.journal"))
    console.print(f"an interrupted run cannot go on ({why}); kept as {aside}", markup=False)


def judge(store: Store, tonight: NightSummary, policy: Policy, masked: Mapping[str, list[Mask]]) -> Report:
    """Compare tonight with the stored nights before it."""
    history = read_history(store, tonight, policy, masked, tonight.started)
    try:
        pinned = pinned_night(store, tonight.suite, tonight.machine_class)
    except SentinelError as problem:
        console.print(f"no comparison with the pinned run: {problem}", markup=False, style="yellow")
        pinned = None
    return detect(tonight, history, policy, masks=masked, pinned=pinned)


def score(config: NightlyConfig, store: Store, run: Run, tonight: NightSummary) -> Scored:
    """The V1 score of the run. What is wrong with its reference is told, and stops nothing else."""
    try:
        reference, name = _reference(config, store, tonight)
        if reference is None:
            return Scored(None, "", "the first valid night becomes the reference, 1000")
        results = measurements_of(run, "tonight").latencies
        return Scored(score_v1(reference, results, published_taxonomy().domain_of), name)
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


def pin_first_valid_night(store: Store, tonight: NightSummary, key: str, policy: Policy) -> None:
    """The first night that is fit for a baseline becomes the reference; it stays until somebody moves the pin."""
    if tonight.coverage < policy.min_coverage:
        return
    if REFERENCE_PIN not in read_pins(store, tonight.suite, tonight.machine_class):
        set_pin(store, REFERENCE_PIN, key)


def file_alerts(
    config: NightlyConfig, alerts: tuple[Alert, ...], report: Report, run: Run, scored: Scored
) -> list[Filed]:
    """File every alert that tonight speaks of. What is filed already, unchanged, stays as it is."""
    tracker = open_tracker(config)
    concerned = [alert for alert in alerts if alert.knows(report.tonight.run)]
    filed = [tracker.put(_issue(alert, config, report, run, scored)) for alert in concerned]
    return [one for one in filed if one is not None]


def open_tracker(config: NightlyConfig) -> Tracker:
    """Where the configuration says that issues go."""
    if config.github is None:
        return Outbox(config.outbox)
    try:
        from bot.github.client import Client
        from bot.github.issues import GitHubIssues
    except ImportError as error:
        raise BotError(
            "`github` in the configuration needs PyGithub; install it with: pip install 'torchbench-sentinel[bot]'"
        ) from error
    return GitHubIssues(Client(config.github, config.github_login))


def _issue(alert: Alert, config: NightlyConfig, report: Report, run: Run, scored: Scored) -> Issue:
    facts = IssueFacts(
        kind=alert.kind,
        tests=alert.tests,
        is_open=alert.is_open,
        closed_because=alert.closed_because,
        opened=f"{alert.opened:%Y-%m-%d}",
        nights=tuple(
            NightLine(
                date=f"{night.started:%Y-%m-%d %H:%M}",
                build=night.build,
                findings=", ".join(f"{test} {found}" for test, found in night.findings.items()),
                note=night.note,
            )
            for night in reversed(alert.nights)
        ),
        owners=config.owners,
        reproduce=reproduce_commands(run.header, config.suite, alert.tests, config.store, config.policy, alert.opened),
        score=scored.score.total if scored.score else None,
        score_of=scored.reference,
        worst=_worst(alert),
    )
    return Issue(
        key=alert.key,
        title=render_title(facts, report),
        body=render_body(facts, report),
        labels=LABELS[alert.kind],
        is_open=alert.is_open,
    )


def _worst(alert: Alert) -> str:
    """The largest change that the night of its opening found, as told there."""
    if alert.kind == "failure":
        return ""
    return max(alert.nights[0].findings.values(), key=lambda found: float(found.rstrip("%")), default="")


def _print_summary(report: Report, scored: Scored, filed: list[Filed], config: NightlyConfig) -> None:
    lines = Text()
    if scored.score:
        coverage = scored.score.coverage
        lines.append(
            f"score {scored.score.total:.1f} ({scored.reference} = 1000; "
            f"{len(coverage.scored)} of {coverage.reference} tests of the reference)\n"
        )
    else:
        lines.append(f"score: none, {scored.problem}\n")
    for issue in filed:
        lines.append(f"issue {issue.effect}: {issue.title}\n  {issue.where}\n")
    if not filed:
        lines.append("no issue to file\n")
    lines.append(f"details: {config.work / 'nightly.json'}")
    console.print(Panel(lines, title=f"nightly {report.suite}, {report.machine_class}"))
    console.print(Text(f"verdict: {report.verdict}: {report.reason}", style="bold"))


def _write_summary(
    path: Path, report: Report, scored: Scored, filed: list[Filed], run: Run, key: str, seconds: float
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
        "report": report.model_dump(mode="json", by_alias=True),
    }
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    scratch.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    scratch.replace(path)
