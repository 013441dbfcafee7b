"""The issue of an alert, as a maintainer reads it: verdict first, then the numbers, then how to see it oneself."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from baselines.confirming.state import Interval
from baselines.report import Report, Row, State
from bot.inside import Inside
from bot.pages.templating import shell_word as _shell
from bot.pages.templating import templates as _templates
from torchbenchmark.records import RunHeader

MOST_ROWS = 60  # of the table; the rest is counted


@dataclass(frozen=True)
class NightLine:
    """One line of the alert's history."""

    date: str
    build: str
    findings: str
    note: str


@dataclass(frozen=True)
class IssueFacts:
    """What the issue of one alert tells, beside the evidence of its newest night with a finding."""

    kind: str  # "regression", "failure", or that of an announcement
    suite: str
    tests: tuple[str, ...]  # of the alert
    is_open: bool
    closed_because: str
    opened: str
    nights: tuple[NightLine, ...]  # newest first
    owners: tuple[str, ...]
    worst: str  # the largest change in the night that opened it, such as "+61.2%"; empty of a failure
    accept: str = ""  # the command that accepts its level; empty if it has none
    decided: tuple[str, ...] = ()  # what people have decided, a sentence of Markdown each
    comments: tuple[str, ...] = ()  # what may be said in a comment; empty where nobody heeds any
    culprit: str = ""  # what a bisection came to, as Markdown; empty if there was none


def render_title(facts: IssueFacts) -> str:
    """What happened, to how many tests, by how much, since when. Plain text, and the same every night."""
    tests = f"{len(facts.tests)} test" + ("" if len(facts.tests) == 1 else "s")
    if facts.kind == "failure":
        what = f"{tests} newly failing"
    elif facts.kind == "improvement":
        what = f"{tests} faster by up to {facts.worst.lstrip('-')}"
    elif facts.kind == "count":
        what = f"Counts of {tests} changed"
    elif facts.kind == "environment":
        what = "Another environment"
    elif "total" in facts.tests:
        what = f"Total {facts.worst.lstrip('+')} slower"
    else:
        what = f"{tests} slower by up to {facts.worst.lstrip('+')}"
    return f"{what} since {facts.opened} ({facts.suite})"


def render_body(facts: IssueFacts, evidence: str) -> str:
    """The issue's Markdown, without its title. It says nothing of tonight but what tonight changed in the alert."""
    return _templates().get_template("issue.md.j2").render(facts=facts, evidence=evidence)


def render_evidence(
    kind: str,
    tests: Sequence[str],
    report: Report,
    reproduce: Sequence[str],
    score: float | None,
    score_of: str,
    intervals: Sequence[Interval] = (),
    side_by_side: str = "",
    inside: Inside | None = None,
) -> str:
    """What a night showed of an alert's tests, as Markdown. `score_of` says what 1000 is; `intervals` are what pairs of
    both builds showed when it was filed; `side_by_side` is the command that measures them so again, if times are in
    question; `inside` is what profiles of both builds showed."""
    rows = _rows(tests, report)
    named = {row.test for row in rows}
    exact = report.confirmation.exact if report.confirmation is not None else ()
    return (
        _templates()
        .get_template("evidence.md.j2")
        .render(
            kind=kind,
            tests=tests,
            report=report,
            reproduce=reproduce,
            side_by_side=side_by_side,
            inside=inside,
            score=score,
            score_of=score_of,
            intervals=sorted(intervals, key=lambda one: (-one.effect, one.test, one.channel))[:MOST_ROWS],
            rows=rows[:MOST_ROWS],
            more=max(0, len(rows) - MOST_ROWS),
            slower=[row for row in rows if row.state is State.SLOWER],
            failing=[row for row in rows if row.state in (State.NEWLY_FAILING, State.STILL_FAILING)],
            asked={one.test: one.sentence for one in exact if one.kind == "newly failing" and one.test in named},
            counts=[count for count in report.counts if count.test in named],
            unchanged=sum(row.state is State.UNCHANGED and row.test not in named for row in report.rows),
            improved=[test for test in report.tests(State.FASTER) if test not in named],
        )
    )


def render_announcement(
    kind: str, tests: Sequence[str], findings: Mapping[str, str], intervals: Sequence[Interval], report: Report
) -> str:
    """What is told once and is no fault, as Markdown."""
    shown = sorted(intervals, key=lambda one: (one.effect, one.test, one.channel))[:MOST_ROWS]
    template = _templates().get_template("announcement.md.j2")
    return template.render(kind=kind, tests=tests, findings=findings, intervals=shown, report=report)


def reproduce_commands(
    header: RunHeader, suite: str, tests: Sequence[str], store: str, policy: str | None, before: datetime
) -> tuple[str, ...]:
    """The commands that measure these tests again as tonight, and compare them with the nights before the alert.
    Without a name or path of the policy, its keys stand in the configuration, and are to be copied into a file."""
    torchbench = _torchbench()
    run = [
        f"{torchbench} run --suite {_shell(suite)} --device {header.device} --rounds {header.rounds}",
        f"--processes {header.processes} --threads {header.measuring.threads} --budget {header.measuring.budget_s:g}",
        f"--python {_shell(header.build.interpreter)}",
        *(f"--models {_shell(folder)}" for folder in header.model_folders),
        *(f"--test {_shell(test)}" for test in tests if test != "total"),
        "--out again.jsonl",
    ]
    return (
        " \\\n  ".join(run),
        f"{torchbench} detect again.jsonl --store {_shell(store)} --policy {_shell(policy or 'policy.yaml')} "
        f"--before {before.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        f"{'' if policy else '  # in policy.yaml: what stands below `policy` in the configuration'}",
    )


def side_by_side_command(header: RunHeader, suite: str, tests: Sequence[str]) -> str:
    """Measures both builds in pairs. LAST_GOOD stands for the other interpreter: nights that install their builds have
    had both in one folder."""
    pairs = [
        f"{_torchbench()} ab LAST_GOOD {_shell(header.build.interpreter)}",
        f"--suite {_shell(suite)} --device {header.device} --threads {header.measuring.threads}",
        f"--budget {header.measuring.budget_s:g}",
        *(f"--models {_shell(folder)}" for folder in header.model_folders),
        *(f"--test {_shell(test)}" for test in tests if test != "total"),
    ]
    return " \\\n  ".join(pairs)


def accepting_command(suite: str, machine_class: str, store: str, key: str) -> str:
    """Takes the level of an alert for what is normal."""
    series = f"{_shell(suite)} {_shell(machine_class)}"
    return f"{_torchbench()} alerts accept --store {_shell(store)} {series} {key} --why 'the reason'"


def _torchbench() -> str:
    beside = Path(sys.executable).with_name("torchbench")
    return _shell(str(beside)) if beside.exists() else "torchbench"  # as is: an environment need not be activated


def _rows(tests: Sequence[str], report: Report) -> list[Row]:
    """The alert's tests, worst first; of an alert of the total every test that was compared."""
    whole = "total" in tests
    rows = [row for row in report.rows if row.test in tests or (whole and row.change is not None)]
    return sorted(rows, key=lambda row: (-(row.change or 0.0), row.test))
