"""A person looks after an alert: `/ack` in a comment and `torchbench alerts ack`."""

from datetime import UTC, datetime

from baselines.store import Store
from bot.github.alert import Alert
from bot.github.decisions import Acknowledged
from bot.triage.deciding import decide, require_open
from torchbenchmark.foreign_text import one_line


def acknowledge(
    store: Store, suite: str, machine_class: str, key: str, *, by: str, why: str = "", now: datetime | None = None
) -> Alert:
    """Say that an open alert is looked after. Returns the alert; one that is acknowledged already, as it is. A relapse
    is to be acknowledged anew.

    Raises BotError, and has changed nothing, if there is no such alert, or it is closed.
    """

    def change(alert: Alert, where: str) -> Alert:
        require_open(alert, where)
        if alert.is_acknowledged:
            return alert
        decided = Acknowledged(at=now or datetime.now(UTC), by=by, why=one_line(why), episode=len(alert.earlier))
        return alert.model_copy(update={"acknowledged": decided})

    return decide(store, suite, machine_class, key, by, change, verb="acknowledged")
