"""A person decides about an alert: it is found by its key and changed by conditional write, so that it may be decided
while a night is measured. Comments below an issue and `torchbench alerts` do the same."""

import re
from collections.abc import Callable, Iterable

from baselines.store import Store
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.alert_store import change_alerts
from torchbenchmark.foreign_text import inline_code, one_line

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62})(?:\[bot\])?")


def decide(
    store: Store,
    suite: str,
    machine_class: str,
    key: str,
    by: str,
    change: Callable[[Alert, str], Alert],
    *,
    verb: str,
) -> Alert:
    """The alert after `change`, which is given it and how to begin an error, and returns it as it was if there is
    nothing more to decide.

    Raises BotError, and has changed nothing, if there is no such alert.
    """
    if not _NAME.fullmatch(by):
        raise BotError(f"{verb} by {one_line(by)!r}: a name of letters, digits and . _ - is needed, as on GitHub")
    where = f"{store.location}: {suite} on {machine_class}"

    def apply(alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
        before = find_alert(alerts, key, where)
        after = change(before, where)
        if after == before:
            return alerts
        after = after.model_copy(update={"revision": before.revision + 1})
        return tuple(after if one.key == key else one for one in alerts)

    return find_alert(change_alerts(store, suite, machine_class, apply), key, where)


def find_alert(alerts: Iterable[Alert], key: str, where: str) -> Alert:
    known = {alert.key: alert for alert in alerts}
    if key not in known:
        there = ", ".join(alert.key for alert in known.values() if alert.is_open and alert.kind == "regression")
        raise BotError(f"{where} has no alert {one_line(key)!r}; open are: {there or 'none'}")
    return known[key]


def require_open(alert: Alert, where: str) -> None:
    if not alert.is_open:
        raise BotError(f"{where}: alert {alert.key} is closed already: {alert.closed_because}")


def because(why: str) -> str:
    """A reason behind a sentence, as Markdown."""
    return f": {inline_code(why)}" if why.strip() else ""
