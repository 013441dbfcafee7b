"""The state of an alert: derived from what its nights, its bisection and people have said of it, and stored nowhere."""

from datetime import datetime
from typing import Literal

from bot.github.alert import Alert

AlertState = Literal[
    "new",  # found by the limits alone, and not handed to the tracker yet
    "confirmed",  # by pairs, and not handed to the tracker yet
    "filed",  # there is an issue
    "culprit found",  # a bisection has come to a commit
    "acknowledged",  # somebody looks after it
    "snoozed",  # it bothers nobody until a time
    "expected",  # its level is what is normal: closed
    "noise",  # it was nothing: closed
    "merged",  # it is one with another alert: closed
    "recovered",  # its tests are good again: closed
    "over",  # closed, as it cannot be compared any more, or was told long ago
    "relapsed",  # it was closed, and is back
]


def state_of(alert: Alert, now: datetime) -> AlertState:
    """What a person has decided goes before what is known, and the newest that is known before the older."""
    if alert.noise is not None:
        return "noise"
    if alert.accepted is not None:
        return "expected"
    if alert.merged_into:
        return "merged"
    if not alert.is_open:
        return "recovered" if alert.has_recovered else "over"
    if is_snoozed(alert, now):
        return "snoozed"
    if alert.is_acknowledged:
        return "acknowledged"
    if alert.culprit is not None:
        return "culprit found"
    if alert.earlier:
        return "relapsed"
    if alert.filed is not None:
        return "filed"
    return "confirmed" if alert.signal else "new"


def is_snoozed(alert: Alert, now: datetime) -> bool:
    return alert.snoozed is not None and now < alert.snoozed.until
