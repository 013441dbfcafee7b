"""A person accepts what an alert tells: its level is what is normal from now on, and the alert is over.

Only the alert is changed, by conditional write, so that it may be accepted while a night is measured; the nights that
begin later go by it. `/expected` in a comment and `torchbench alerts accept` are the same.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from baselines.confirming.accepting import AcceptedLevel, onset_of
from baselines.confirming.state import ClassState
from baselines.confirming.stored_state import read_state
from baselines.store import Store
from bot.errors import BotError
from bot.github.alert import Accepted, Alert
from bot.github.alert_store import read_alerts
from bot.triage.deciding import because, decide, require_open

_TOLD = {"improvement": "an improvement", "count": "a count", "environment": "the environment"}


def accept_alert(
    store: Store, suite: str, machine_class: str, key: str, *, by: str, why: str = "", now: datetime | None = None
) -> Alert:
    """Accept the level of an open alert of something slower. Returns the alert, which is closed; one that was accepted
    already is returned as it is.

    Raises BotError, and has changed nothing, if there is no such alert, or it has no level to accept.
    """
    state, _ = read_state(store, suite, machine_class)

    def accept(alert: Alert, where: str) -> Alert:
        if alert.accepted is not None:
            return alert
        if alert.kind == "failure":
            raise BotError(
                f"{where}: alert {key} is of tests that fail, which have no level; leave them out of the suite"
            )
        if alert.is_announcement:
            raise BotError(
                f"{where}: alert {key} tells of {_TOLD[alert.kind]}, and is normal already; nothing to accept"
            )
        require_open(alert, where)
        return _accepted(alert, state, by, why, now)

    return decide(store, suite, machine_class, key, by, accept, verb="accepted")


def accepted_levels(alerts: Iterable[Alert]) -> list[AcceptedLevel]:
    """What was accepted of the alerts, for the state of their class."""
    return [AcceptedLevel(one.key, one.accepted.at, one.accepted.since) for one in alerts if one.accepted is not None]


def nights_of_alerts(store: Store, suite: str, machine_class: str) -> set[datetime]:
    """The nights that the open alerts of a class look back to: what they are held against, and what their segments
    would begin with if somebody accepted them."""
    alerts = [alert for alert in read_alerts(store, suite, machine_class) if alert.is_open]
    if not alerts:
        return set()
    state, _ = read_state(store, suite, machine_class)
    needed = {interval.base for alert in alerts for interval in alert.intervals}
    needed |= {alert.good_until for alert in alerts if alert.good_until is not None}
    return needed | {onset_of(state, test, alert.opened) for alert in alerts for test in alert.tests}


def _accepted(alert: Alert, state: ClassState, by: str, why: str, now: datetime | None) -> Alert:
    at = now or datetime.now(UTC)
    since = {test: onset_of(state, test, alert.opened) for test in alert.tests}
    return alert.model_copy(
        update={
            "accepted": Accepted(at=at, by=by, since=since),
            "closed": at,
            "closed_because": f"accepted as the new level by {by}{because(why)}",
            "recovered_since": None,
            "recovered_nights": 0,
        }
    )
