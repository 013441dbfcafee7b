"""`torchbench alerts`: which alerts a store has, and what a person decides about one."""

import getpass
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.text import Text

from baselines.cli import ClassArgument, StoreOption, SuiteArgument
from baselines.night_tables import new_table, texts
from baselines.runs import list_series
from baselines.store import open_store
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.alert_state import state_of
from bot.github.alert_store import read_alerts
from bot.github.precision import judged_by_people
from bot.triage.accepting import accept_alert
from bot.triage.acknowledging import acknowledge
from bot.triage.calling_noise import call_noise
from bot.triage.snoozing import snooze
from torchbenchmark.foreign_text import one_line
from torchbenchmark.quantity import few
from torchbenchmark.terminal import console, new_app, print_table

KeyArgument = Annotated[
    str, typer.Argument(help="The key of the alert, as `list` shows it and the last line of its issue.")
]
ByOption = Annotated[str | None, typer.Option(help="Who decides it (default: your login).")]
WhyOption = Annotated[str, typer.Option(help="Why, for those who read the issue later.")]
_SPAN = re.compile(r"([0-9]{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def register(app: typer.Typer) -> None:
    alerts = new_app("The alerts of a store, and what people decide about them.")
    alerts.command("list")(list_alerts)
    alerts.command("accept")(accept)
    alerts.command("ack")(ack)
    alerts.command("snooze")(snooze_command)
    alerts.command("noise")(noise)
    app.add_typer(alerts, name="alerts")


def list_alerts(
    store: StoreOption,
    every: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
) -> None:
    """The open alerts of every suite and class, with the keys that the other commands take; what is called noise; and
    how often people have called an alert so."""
    opened, now = open_store(store, must_exist=True), datetime.now(UTC)
    table = new_table("key", "suite", "class", "kind", "state", "since", "tests", "closed because")
    known: list[Alert] = []
    for suite, machine_class in list_series(opened):
        for alert in read_alerts(opened, suite, machine_class):
            known.append(alert)
            if every or alert.is_open:
                since = f"{alert.opened:%Y-%m-%d}"
                told = (_told_state(alert, now), since, few(alert.tests), alert.closed_because)
                table.add_row(*texts(alert.key, suite, machine_class, alert.kind, *told))
    if table.rows:
        print_table(table)
    else:
        console.print("no alert" if every else "no open alert")
    for alert in known:
        if alert.noise is not None and now < alert.noise.until:
            told = f"until {alert.noise.until:%Y-%m-%d} called noise by {alert.noise.by}: {few(alert.tests)}"
            console.print(Text(f"{told} ({alert.key})"))
    if any(alert.noise or alert.accepted or alert.acknowledged for alert in known):
        console.print(Text(judged_by_people(known).sentence))


def _told_state(alert: Alert, now: datetime) -> str:
    state = state_of(alert, now)
    if state == "snoozed" and alert.snoozed is not None:
        return f"snoozed until {alert.snoozed.until:%Y-%m-%d %H:%M}"
    if state == "acknowledged" and alert.acknowledged is not None:
        return f"acknowledged by {alert.acknowledged.by}"
    return state


def accept(
    store: StoreOption,
    suite: SuiteArgument,
    machine_class: ClassArgument,
    key: KeyArgument,
    by: ByOption = None,
    why: WhyOption = "",
) -> None:
    """Accept the level that an alert tells of: the nights since its onset are what is normal, and it is closed."""
    opened = open_store(store, must_exist=True)
    alert = accept_alert(opened, suite, machine_class, key, by=_name(by), why=why)
    console.print(Text(f"alert {alert.key}: {alert.closed_because}"))
    for test, since in (alert.accepted.since if alert.accepted is not None else {}).items():
        console.print(Text(f"  {test}: from the night of {since:%Y-%m-%d %H:%M} on"))
    console.print("the nights that begin from now on are held against that; the next one closes the issue")


def ack(
    store: StoreOption,
    suite: SuiteArgument,
    machine_class: ClassArgument,
    key: KeyArgument,
    by: ByOption = None,
    why: WhyOption = "",
) -> None:
    """Say that somebody looks after an alert; a relapse is to be acknowledged anew."""
    opened = open_store(store, must_exist=True)
    alert = acknowledge(opened, suite, machine_class, key, by=_name(by), why=why)
    by = alert.acknowledged.by if alert.acknowledged is not None else ""
    console.print(Text(f"alert {alert.key}: acknowledged by {by}; the next night tells it in the issue"))


def snooze_command(
    store: StoreOption,
    suite: SuiteArgument,
    machine_class: ClassArgument,
    key: KeyArgument,
    how_long: Annotated[str, typer.Argument(metavar="FOR", help="How long, such as 12h, 7d or 2w.")],
    by: ByOption = None,
    why: WhyOption = "",
) -> None:
    """Let an alert say nothing for a while; then it speaks if it is still there."""
    opened, until = open_store(store, must_exist=True), datetime.now(UTC) + _span(how_long)
    alert = snooze(opened, suite, machine_class, key, until=until, by=_name(by), why=why)
    console.print(Text(f"alert {alert.key}: says nothing until {until:%Y-%m-%d %H:%M} UTC"))


def noise(
    store: StoreOption,
    suite: SuiteArgument,
    machine_class: ClassArgument,
    key: KeyArgument,
    by: ByOption = None,
    why: WhyOption = "",
) -> None:
    """Say that an alert was nothing: it is closed, and for 30 days its tests must go further to be called again."""
    opened = open_store(store, must_exist=True)
    alert = call_noise(opened, suite, machine_class, key, by=_name(by), why=why)
    console.print(Text(f"alert {alert.key}: {alert.closed_because}"))
    for test, width in (alert.noise.widths if alert.noise is not None else {}).items():
        until = f"until {alert.noise.until:%Y-%m-%d}" if alert.noise is not None else ""
        beyond = f"what is within {width:.1%} is nothing" if width else "must fail three nights in a row"
        console.print(Text(f"  {test}: {beyond} {until}"))


def _span(text: str) -> timedelta:
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise BotError(f"for {one_line(text)!r}: say how long, such as 12h, 7d or 2w")
    return int(found[1]) * _UNITS[found[2]]


def _name(by: str | None) -> str:
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # in a container, of a user that no file knows
        raise BotError("who decides it? this machine knows no login of yours; say --by NAME") from error
