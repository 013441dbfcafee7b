"""The summary of a nightly on the page of its workflow run: the verdict, and the tests that are not as they were."""

from collections.abc import Sequence

from baselines.confirming.rates import told
from baselines.confirming.state import NightOutcome
from baselines.report import Report, State
from torchbenchmark.foreign_text import inline_code

MOST_ROWS = 60
_AS_BEFORE = (State.UNCHANGED, State.NEW)


def render_summary(report: Report, score: float | None, score_of: str, issues: Sequence[str]) -> str:
    """Markdown. `score_of` is what scores 1000, `issues` are the titles of what is filed."""
    tonight = report.tonight
    lines = [
        f"## Nightly: {report.verdict}",
        "",
        inline_code(report.reason),
        "",
        f"{inline_code(report.suite)} on {inline_code(report.machine_class)}, build {inline_code(tonight.build)}, "
        f"{tonight.coverage:.0%} of the planned tests delivered",
        "",
    ]
    if report.total is not None:
        lines.append(
            f"- total {report.total.score:.1f}: {inline_code(report.judged)} against the nights before, which are 1000 "
            f"({report.total.change:+.1%} time), over {report.total.tests} tests"
        )
    if score is not None:
        lines.append(
            f"- score {score:.1f}: the published Score V1, wall latency against {inline_code(score_of)}, "
            "which is 1000; no verdict hangs on it"
        )
    if report.total is not None or score is not None:
        lines.append("")
    if report.confirmation is not None and report.confirmation.rates is not None:
        for channel, margin in report.confirmation.margins.items():
            lines.append(f"- margin of {inline_code(channel)}: {margin:.2%}, as builds compared with themselves differ")
        lines += [*(f"- {line}" for line in told(report.confirmation.rates)), ""]
    for test, one in list(report.noisy.items())[:MOST_ROWS]:
        within = f" within {one.width:.1%}" if one.width else ""
        lines.append(f"- called noise until {one.until:%Y-%m-%d}: {inline_code(test)}{within}")
    if report.noisy:
        lines.append("")
    rows = [row for row in report.rows if row.state not in _AS_BEFORE]
    if rows:
        lines += ["| test | state | change | reason |", "|---|---|--:|---|"]
        for row in rows[:MOST_ROWS]:
            change = f"{row.change:+.1%}" if row.change is not None else ""
            reason = inline_code(row.reason) if row.reason else ""
            lines.append(f"| {inline_code(row.test)} | {row.state} | {change} | {reason} |")
        if len(rows) > MOST_ROWS:
            lines += ["", f"…and {len(rows) - MOST_ROWS} more."]
        lines.append("")
    if report.confirmation is not None:
        lines += _measured_again(report.confirmation)
    lines += [f"- issue: {inline_code(title)}" for title in issues]
    lines.append(f"- run {inline_code(tonight.run)}, {inline_code(tonight.key)}")
    return "\n".join(lines) + "\n\n"


def _measured_again(outcome: NightOutcome) -> list[str]:
    """What pairs said; of what they did not show, only how much it was."""
    lines = []
    if outcome.not_measured:
        lines.append(f"- not measured again: {inline_code(outcome.not_measured)}")
    if outcome.not_asked_elsewhere:
        lines.append(f"- not asked on a second runner: {inline_code(outcome.not_asked_elsewhere)}")
    if outcome.not_closed:
        lines.append(f"- no alert is closed or cleared, as pairs were not asked: {inline_code(outcome.not_closed)}")
    for closing in outcome.closings or ():
        lines += [f"- {inline_code(sentence)}" for sentence in closing.sentences[:MOST_ROWS]]
    for one in outcome.confirmed[:MOST_ROWS]:
        change = "slower" if one.kind == "regression" else "faster"
        lines.append(
            f"- confirmed {change} by {one.pairs} pairs: {inline_code(f'{one.test} {one.channel}')} {one.effect:+.1%}"
        )
    if others := len(outcome.tried) - len(outcome.confirmed):
        lines.append(f"- measured again and not confirmed: {others} of {len(outcome.tried)}")
    for filed in outcome.filed:
        for interval in filed.intervals[:MOST_ROWS]:
            lines.append(
                f"- there again: {inline_code(f'{interval.test} {interval.channel}')} {interval.effect:+.1%} "
                f"[{interval.low:+.1%}, {interval.high:+.1%}]"
            )
    return lines
