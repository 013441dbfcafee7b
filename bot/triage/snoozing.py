"""An alert is to bother nobody for a while: `/snooze` in a comment and `torchbench alerts snooze`."""

from datetime import UTC, datetime, timedelta

from baselines.store import Store
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.decisions import Snoozed
from bot.triage.deciding import decide, require_open
from torchbenchmark.foreign_text import one_line

LONGEST = timedelta(days=90)  # what may be silent for longer is no alert


def snooze(
    store: Store,
    suite: str,
    machine_class: str,
    key: str,
    *,
    until: datetime,
    by: str,
    why: str = "",
    now: datetime | None = None,
) -> Alert:
    """Let an open alert say nothing until a time: no comment, no mention, no message. Then it speaks if it is still
    there. Returns the alert; one that is snoozed until then already, as it is.

    Raises BotError, and has changed nothing, if there is no such alert, it is closed, or the time is no time to come.
    """
    at = now or datetime.now(UTC)
    if until.tzinfo is None:
        raise BotError("snoozed until a time without a zone; give one, such as 2026-12-01T00:00:00+00:00")
    if not at < until <= at + LONGEST:
        raise BotError(f"snoozed until {until:%Y-%m-%d %H:%M}: give a time within the next {LONGEST.days} days")

    def change(alert: Alert, where: str) -> Alert:
        require_open(alert, where)
        if alert.snoozed is not None and alert.snoozed.until == until.astimezone(UTC):
            return alert
        begun = alert.snoozed.at if alert.snoozed is not None and at < alert.snoozed.until else at
        return alert.model_copy(update={"snoozed": Snoozed(at=begun, by=by, why=one_line(why), until=until)})

    return decide(store, suite, machine_class, key, by, change, verb="snoozed")
