"""How an alert is filed: its title, body, labels, what people need to know of it, and who is mentioned."""

from datetime import UTC, datetime

from bot.config import NightlyConfig
from bot.github.alert import Alert
from bot.github.alert_events import events_of
from bot.github.alert_record import record_of
from bot.github.alert_state import is_snoozed, state_of
from bot.github.issue import BOT_LABEL, Issue
from bot.owners import owners_of
from bot.pages.comment import CommentFacts, render_comment, render_on_culprit
from bot.pages.culprit import CulpritChange, CulpritFacts, render_culprit
from bot.pages.issue import MOST_ROWS, IssueFacts, NightLine, accepting_command, render_body, render_title
from bot.triage.deciding import because
from torchbenchmark.experiment import Experiment
from torchbenchmark.foreign_text import inline_code

LABELS = {
    "regression": (BOT_LABEL, "performance regression"),
    "failure": (BOT_LABEL, "newly failing"),
    "improvement": (BOT_LABEL, "performance improvement"),
    "count": (BOT_LABEL, "count change"),
    "environment": (BOT_LABEL, "environment change"),
}


# What fits an alert of something that is to be mended (bot/github/commands has all there is).
_COMMENTS = {
    "regression": ("/ack", "/expected", "/noise", "/snooze 7d", "/bisect"),
    "failure": ("/ack", "/noise", "/snooze 7d"),
}


def issue_of(alert: Alert, config: NightlyConfig, now: datetime | None = None) -> Issue:
    """How an alert is filed."""
    now = now or datetime.now(UTC)
    owners = () if is_snoozed(alert, now) else owners_of(config.owners, _models(alert), _paths(alert))
    facts = IssueFacts(
        kind=alert.kind,
        suite=alert.suite,
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
        owners=owners,
        decided=_decided(alert, now),
        worst=_worst(alert),
        accept=accepting_command(alert.suite, alert.machine_class, config.store, alert.key)
        if alert.kind == "regression"
        else "",
        comments=_COMMENTS.get(alert.kind, ()) if config.github is not None else (),
        culprit=_culprit(alert),
    )
    return Issue(
        key=alert.key,
        title=render_title(facts),
        body=render_body(facts, alert.evidence),
        labels=(*LABELS[alert.kind], _state_label(alert, now)),
        is_open=alert.is_open,
        occasion=_occasion(alert),
        revision=alert.revision,
        comments=tuple(
            (event.key, render_comment(event.what, _comment_facts(alert, facts)))
            for event in events_of(alert, now)
            if event.what != "filed"  # the issue itself
        ),
        record=record_of(alert),
        culprit=_on_culprit(alert, config, facts, now),
        not_planned=alert.noise is not None or bool(alert.merged_into),
    )


def _state_label(alert: Alert, now: datetime) -> str:
    """What has an issue is filed."""
    state = state_of(alert, now)
    return f"alert: {'filed' if state in ('new', 'confirmed') else state}"


def _models(alert: Alert) -> list[str]:
    return [Experiment.parse(test).model for test in alert.tests if "[" in test]


def _paths(alert: Alert) -> list[str]:
    changes = alert.verdict.changes if alert.verdict is not None else ()
    return [path for change in changes for commit in change.commits for path in commit.paths]


def _decided(alert: Alert, now: datetime) -> tuple[str, ...]:
    """What people have decided, a sentence each, as Markdown."""
    found = []
    if alert.acknowledged is not None and alert.is_acknowledged:
        done = alert.acknowledged
        found.append(f"Acknowledged by {done.by} on {done.at:%Y-%m-%d}{because(done.why)}.")
    if alert.snoozed is not None and is_snoozed(alert, now):
        done = alert.snoozed
        found.append(f"Snoozed by {done.by} until {done.until:%Y-%m-%d %H:%M} UTC{because(done.why)}.")
    if alert.noise is not None:
        within = [f"{inline_code(test)} within {width:.1%}" for test, width in alert.noise.widths.items() if width]
        told = f"until {alert.noise.until:%Y-%m-%d} its tests must go further to be called again"
        found.append(f"Called noise: {told}{': ' + ', '.join(within[:MOST_ROWS]) if within else ''}.")
    return tuple(found)


def _comment_facts(alert: Alert, facts: IssueFacts) -> CommentFacts:
    return CommentFacts(
        kind=alert.kind,
        tests=len(alert.tests),
        culprit=facts.culprit,
        closed_because=alert.closed_because,
        opened=facts.opened,
    )


def _on_culprit(alert: Alert, config: NightlyConfig, facts: IssueFacts, now: datetime) -> tuple[str, str] | None:
    """What is told on the pull request of the one commit that it was, if the configuration asks for that."""
    if not config.alerts.comment_on_culprit or alert.culprit is None or not alert.is_open or is_snoozed(alert, now):
        return None
    return alert.culprit, render_on_culprit(render_title(facts), alert.tests, facts.culprit)


def _culprit(alert: Alert) -> str:
    if (verdict := alert.verdict) is None:
        return ""
    changes = [
        CulpritChange(
            [(commit.commit, commit.subject) for commit in one.commits],
            one.more,
            one.told,
            one.probability,
            one.certainty,
        )
        for one in verdict.changes
    ]
    return render_culprit(
        CulpritFacts(
            date=f"{verdict.at:%Y-%m-%d}",
            verdict=verdict.verdict,
            good=verdict.good,
            bad=verdict.bad,
            changes=changes,
            nothing=verdict.nothing,
            ends=verdict.ends,
            reason=verdict.reason,
            environment=verdict.environment,
            of_merge=verdict.of_merge,
        )
    )


def _occasion(alert: Alert) -> str:
    """A person who closes the issue has decided on these tests, this time: not on others, and not on a relapse."""
    time = f"relapse {len(alert.earlier)}" if alert.earlier else "first time"
    return f"{len(alert.tests)} tests, {time}"


def _worst(alert: Alert) -> str:
    """The largest change that a test had when it was first found, this time."""
    if alert.kind not in ("regression", "improvement"):
        return ""
    first: dict[str, str] = {}
    for night in [night for night in alert.nights if night.started >= alert.opened] or alert.nights:
        first = {**night.findings, **first}
    largest = min if alert.kind == "improvement" else max
    return largest(first.values(), key=lambda found: float(found.rstrip("%")), default="")
