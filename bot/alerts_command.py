"""`torchbench alerts`: which alerts a store has, and accepting one."""

import getpass
from typing import Annotated

import typer
from rich.text import Text

from baselines.cli import ClassArgument, StoreOption, SuiteArgument
from baselines.night_tables import new_table, texts
from baselines.runs import list_series
from baselines.store import open_store
from bot.accepting import accept_alert
from bot.errors import BotError
from bot.github.alert_store import read_alerts
from torchbenchmark.quantity import few
from torchbenchmark.terminal import console, new_app, print_table


def register(app: typer.Typer) -> None:
    alerts = new_app("The alerts of a store, and what people decide about them.")
    alerts.command("list")(list_alerts)
    alerts.command("accept")(accept)
    app.add_typer(alerts, name="alerts")


def list_alerts(
    store: StoreOption,
    every: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
) -> None:
    """The open alerts of every suite and class, with the keys that `accept` takes."""
    opened = open_store(store, must_exist=True)
    table = new_table("key", "suite", "class", "kind", "since", "tests", "closed because")
    for suite, machine_class in list_series(opened):
        for alert in read_alerts(opened, suite, machine_class):
            if every or alert.is_open:
                since = f"{alert.opened:%Y-%m-%d}"
                told = (few(alert.tests), alert.closed_because)
                table.add_row(*texts(alert.key, suite, machine_class, alert.kind, since, *told))
    if not table.rows:
        console.print("no alert" if every else "no open alert")
        return
    print_table(table)


def accept(
    store: StoreOption,
    suite: SuiteArgument,
    machine_class: ClassArgument,
    key: Annotated[
        str, typer.Argument(help="The key of the alert, as `list` shows it and the last line of its issue.")
    ],
    by: Annotated[str | None, typer.Option(help="Who accepts it (default: your login).")] = None,
    why: Annotated[str, typer.Option(help="Why, for those who read the issue later.")] = "",
) -> None:
    """Accept the level that an alert tells of: the nights since its onset are what is normal, and it is closed."""
    opened = open_store(store, must_exist=True)
    alert = accept_alert(opened, suite, machine_class, key, by=_login() if by is None else by, why=why)
    console.print(Text(f"alert {alert.key}: {alert.closed_because}"))
    for test, since in (alert.accepted.since if alert.accepted is not None else {}).items():
        console.print(Text(f"  {test}: from the night of {since:%Y-%m-%d %H:%M} on"))
    console.print("the nights that begin from now on are held against that; the next one closes the issue")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # in a container, of a user that no file knows
        raise BotError("who accepts it? this machine knows no login of yours; say --by NAME") from error
