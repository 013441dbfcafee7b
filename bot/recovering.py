"""Alerts that the store has lost are made again from the issues that are there, so that nobody is told of them twice,
and so that they are closed when they are over."""

from baselines.store import Store
from bot.github.alert_record import alert_in
from bot.github.alert_store import change_alerts, has_alerts
from bot.github.issue import Tracker
from torchbenchmark.quantity import counted
from torchbenchmark.terminal import console


def recover_alerts(store: Store, tracker: Tracker, suite: str, machine_class: str) -> None:
    """If the store knows nothing of the alerts of a class, put there what the bot's issues keep of them.

    Raises BotError if the issues cannot be read: a night that knew nothing of them would file them again.
    """
    if has_alerts(store, suite, machine_class):
        return
    found = [alert for one in tracker.recorded() if (alert := alert_in(one)) is not None]
    mine = tuple(alert for alert in found if (alert.suite, alert.machine_class) == (suite, machine_class))
    change_alerts(store, suite, machine_class, lambda before: before or mine)
    if mine:
        told = f"{counted(len(mine), 'alert')} of {suite} on {machine_class} made again from issues"
        console.print(f"{told}: {store.location} had none", markup=False, style="yellow")
