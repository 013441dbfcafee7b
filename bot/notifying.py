"""Messages about alerts to a webhook, as Slack and its like take them: what a person needs to know, told once.

The address is a secret, by which anybody may write there: it is read from the environment where it is used, and stands
in no message and no error.
"""

import os
from collections.abc import Iterable
from datetime import datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

from baselines.store import Store
from bot.alert_issue import issue_of
from bot.alert_settings import NotifySettings
from bot.config import NightlyConfig
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.alert_events import Event, events_of
from bot.github.alert_store import change_alerts
from torchbenchmark.errors import SentinelError
from torchbenchmark.foreign_text import one_line, printable
from torchbenchmark.terminal import console

_TIMEOUT_S = 10
LONGEST = 2000  # characters of a message
_TOLD = {
    "filed": "New",
    "relapsed": "It is back",
    "culprit found": "The culprit is found",
    "recovered": "Recovered, and closed",
    "closed": "Closed",
    "merged": "Closed, as it is one with another",
    "snooze over": "The snooze is over, and it is still there",
}


def notify(config: NightlyConfig, store: Store, alerts: Iterable[Alert], now: datetime) -> None:
    """Send what is new of the alerts. What cannot be sent is told, and tried again the next night; it stops nothing.

    That something is told is stored before it is sent, so that two jobs do not both send it.
    """
    if (settings := config.notify) is None:
        return
    for alert in alerts:
        for event in events_of(alert, now):
            if event.key in alert.told:
                continue
            try:
                _tell(settings, store, alert, event, message(alert, event, config, now))
            except SentinelError as problem:  # of the store, too
                console.print(f"no message of alert {alert.key}: {problem}", markup=False, style="yellow")


def _tell(settings: NotifySettings, store: Store, alert: Alert, event: Event, text: str) -> None:
    if not _claim(store, alert, event):
        return
    try:
        send(settings, text)
    except BotError:
        _give_back(store, alert, event)
        raise


def message(alert: Alert, event: Event, config: NightlyConfig, now: datetime) -> str:
    """In one line, without Markdown, mentions or links but that of the issue."""
    title = one_line(issue_of(alert, config, now).title)
    why = f": {one_line(alert.closed_because)}" if event.what in ("recovered", "closed", "merged") else ""
    where = f" {alert.issue}" if alert.issue else f" (alert {alert.key})"
    told = f"{_TOLD[event.what]}: {title}, {alert.machine_class}{why}"
    return escaped(printable(told))[:LONGEST] + escaped(where)


def escaped(text: str) -> str:
    """Slack's own rule: nothing is a mention, a channel or a link then."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def send(settings: NotifySettings, text: str) -> None:
    """Raises BotError, without the address, if it is not taken."""
    import requests  # takes a while, and few commands need it

    address = _address(settings)
    try:
        answer = requests.post(address, json={"text": text}, timeout=_TIMEOUT_S, allow_redirects=False)
    except requests.RequestException as error:
        # What requests says holds the address, and so does its cause.
        raise BotError(f"the webhook did not answer ({type(error).__name__}); try again later") from None
    if answer.status_code >= 300:
        raise BotError(f"the webhook answered {answer.status_code}; is the address in {settings.webhook} right?")


def _address(settings: NotifySettings) -> str:
    """Of the variable that the configuration names. By https, so that nobody reads along, unless it is this machine."""
    name = settings.webhook
    address = os.environ.get(name.removeprefix("$"), "").strip()
    if not address:
        raise BotError(f"the environment has no {name.removeprefix('$')}; set it to the address of the webhook")
    try:
        parts = urlsplit(address)
        host, is_port = parts.hostname or "", parts.port != 0
    except ValueError:
        host, is_port = "", False
    if not host or not is_port or not address.isprintable() or " " in address:
        raise BotError(f"{name} holds no address; set it to that of the webhook, such as https://hooks.example.com/…")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(host)):
        raise BotError(f"{name} holds an address that is not https; a message about alerts is not sent in the clear")
    return address


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _claim(store: Store, alert: Alert, event: Event) -> bool:
    """Say that an event is told; False if another job has."""
    mine = False

    def change(alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
        nonlocal mine
        mine = any(one.key == alert.key and event.key not in one.told for one in alerts)
        return tuple(_with(one, (*one.told, event.key)) if mine and one.key == alert.key else one for one in alerts)

    change_alerts(store, alert.suite, alert.machine_class, change)
    return mine


def _give_back(store: Store, alert: Alert, event: Event) -> None:
    def change(alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
        return tuple(
            _with(one, tuple(key for key in one.told if key != event.key)) if one.key == alert.key else one
            for one in alerts
        )

    change_alerts(store, alert.suite, alert.machine_class, change)


def _with(alert: Alert, told: tuple[str, ...]) -> Alert:
    return alert.model_copy(update={"told": told})
