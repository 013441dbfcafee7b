"""What happens to an alert that a person needs to know, each once: the rest is in the issue for who looks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.github.alert import Alert
from bot.github.alert_state import is_snoozed
from bot.github.issue import key_of

What = Literal["filed", "relapsed", "culprit found", "recovered", "closed", "merged", "snooze over"]
CULPRITS = ("culprit", "set", "several culprits")  # the verdicts that name commits


@dataclass(frozen=True)
class Event:
    """One of an alert's, at a time."""

    what: What
    key: str  # the same in every night
    at: datetime


def events_of(alert: Alert, now: datetime) -> tuple[Event, ...]:
    """Oldest first. A snoozed alert has none; and what happened while it was snoozed is no event afterwards either: if
    it is still there then, that is one. What people decided is none, as they know; nor is what is told once anyway."""
    if alert.is_announcement:
        return (_event(alert, "filed", "", alert.nights[0].started),)
    if is_snoozed(alert, now):
        return ()
    episode = str(len(alert.earlier))
    found = [_event(alert, "filed", "", alert.nights[0].started)]
    if alert.earlier:
        found.append(_event(alert, "relapsed", episode, alert.opened))
    if alert.verdict is not None and alert.verdict.verdict in CULPRITS:
        found.append(_event(alert, "culprit found", episode, alert.verdict.at))
    if alert.closed is not None and alert.noise is None and alert.accepted is None:
        what: What = "merged" if alert.merged_into else "recovered" if alert.has_recovered else "closed"
        found.append(_event(alert, what, episode, alert.closed))
    if (snoozed := alert.snoozed) is not None:
        found = [one for one in found if not snoozed.at <= one.at < snoozed.until]
        if alert.is_open:
            found.append(_event(alert, "snooze over", snoozed.until.isoformat(), snoozed.until))
    return tuple(sorted(found, key=lambda one: one.at))


def _event(alert: Alert, what: What, of: str, at: datetime) -> Event:
    return Event(what, key_of(alert.key, what, of), at)
