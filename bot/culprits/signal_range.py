"""What a bisection of an alert asks for, out of the store: both ends, the tests that changed, their channel, and what
else differs between the two nights."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from baselines.differences import differences
from baselines.history import read_nights
from baselines.night_evidence import TOTAL
from baselines.runs import list_series
from baselines.series import NightSummary
from baselines.store import Store
from bot.bisect_settings import DEFAULT_CHANNEL
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.alert_store import read_alerts
from torchbenchmark.channels import CHANNELS
from torchbenchmark.environment import normalised_name
from torchbenchmark.foreign_text import one_line

MOST_TESTS = 6  # those that changed most: a pair is the mean of all of them, and takes the time of all
MOST_NAMED = 20  # alerts that an error names
MOST_DIFFERENCES = 20
SHORTEST_KEY = 6  # digits by which an alert may be called
LEAST_BEYOND, SHARE_LOOKED_FOR = 0.005, 0.5  # of the effect that pairs showed: several commits may have part in it
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class SignalRange:
    """Everything that the store knows of the bisection of an alert."""

    alert: Alert
    good: NightSummary  # of the last build that was good for all of the tests
    bad: NightSummary  # the first in which pairs showed all of them slower
    tests: tuple[str, ...]
    channel: str  # empty where the statuses are compared
    effect: float | None  # the smallest of the tests, as a share; None where nobody has measured it by pairs
    environment: tuple[str, ...]  # what differs between the nights beside the subject, as sentences

    @property
    def compared(self) -> Literal["times", "status"]:
        return "status" if self.alert.kind == "failure" else "times"

    @property
    def subject(self) -> str:
        return self.bad.build.subject

    @property
    def beyond(self) -> float | None:
        """The smallest change that is worth looking for."""
        return None if self.effect is None else max(LEAST_BEYOND, SHARE_LOOKED_FOR * abs(self.effect))


def find_alert(store: Store, name: str) -> Alert:
    """The alert of a key, of the beginning of one, or of a confirmed signal. Raises BotError that names those there
    are."""
    there = [alert for suite, where in list_series(store) for alert in read_alerts(store, suite, where)]
    for is_meant in (
        lambda alert: alert.key == name,
        lambda alert: alert.signal == name != "",
        lambda alert: len(name) >= SHORTEST_KEY and alert.key.startswith(name),
    ):
        found = [alert for alert in there if is_meant(alert)]
        if len(found) == 1:
            return found[0]
        if found:
            raise BotError(f"{store.location}: {one_line(name)} may be any of {_named(found)}; name one by its key")
    raise BotError(f"{store.location}: no alert {one_line(name)!r}; there are: {_named(there) or 'none'}")


def _named(alerts: Sequence[Alert]) -> str:
    newest = sorted(alerts, key=lambda alert: (not alert.is_open, -alert.opened.timestamp()))
    told = [
        f"{one.key} ({one.kind}, {len(one.tests)} of {one.suite} on {one.machine_class}, since {one.opened:%Y-%m-%d}"
        f"{'' if one.is_open else ', closed'})"
        for one in newest[:MOST_NAMED]
    ]
    return ", ".join(told) + (f" and {len(alerts) - MOST_NAMED} more" if len(alerts) > MOST_NAMED else "")


def range_of(store: Store, alert: Alert, *, tests: Sequence[str] = (), channel: str | None = None) -> SignalRange:
    """What is to be bisected of an alert. `tests` and `channel` are those that a person has named.

    Raises BotError for an alert that has no range: of counts and the environment, or without a good night.
    """
    where = f"alert {alert.key}"
    if alert.kind in ("count", "environment"):
        raise BotError(f"{where}: tells of {alert.kind}, and keeps no night before it; name --good, --bad and --tests")
    wanted = set(tests) if tests else set(alert.tests) - {TOTAL}
    if not wanted:
        raise BotError(f"{where}: is of the total alone, which no test of its own has moved; name the --tests")
    chosen = channel or ("" if alert.kind == "failure" else _channel_of(alert, wanted))
    shown = {one.test: one for one in alert.intervals if one.channel == chosen and one.test in wanted}
    if shown and not tests:
        wanted = set(shown)
    asked = sorted(wanted, key=lambda test: (-abs(shown[test].effect) if test in shown else 0.0, test))[:MOST_TESTS]
    before = [shown[test].base if test in shown else alert.good_until for test in asked]
    if any(night is None for night in before):
        raise BotError(f"{where}: no night before it was good for {asked[0]}; bisect it by --good, --bad and --tests")
    good = _night(store, alert, min(night for night in before if night is not None))
    bad = _night(store, alert, max(shown[test].head if test in shown else _first_found(alert, test) for test in asked))
    return SignalRange(
        alert=alert,
        good=good,
        bad=bad,
        tests=tuple(asked),
        channel=DEFAULT_CHANNEL[bad.device] if chosen is None else chosen,
        effect=min((shown[test].effect for test in asked if test in shown), key=abs, default=None),
        environment=environment_between(good, bad),
    )


def _channel_of(alert: Alert, tests: Collection[str]) -> str | None:
    """The channel of time that most of the tests were confirmed by; of several, that which is judged first."""
    counted: dict[str, int] = {}
    for one in alert.intervals:
        kind = CHANNELS.get(one.channel)
        if one.test in tests and kind is not None and not kind.exact:
            counted[one.channel] = counted.get(one.channel, 0) + 1
    order = list(CHANNELS)
    usual = DEFAULT_CHANNEL.values()
    return max(counted, key=lambda name: (counted[name], name in usual, -order.index(name)), default=None)


def _first_found(alert: Alert, test: str) -> datetime:
    """The first night of this time in which the alert found the test."""
    found = [night.started for night in alert.nights if test in night.findings and night.started >= alert.opened]
    return min(found, default=alert.nights[-1].started)


def _night(store: Store, alert: Alert, started: datetime) -> NightSummary:
    nights = read_nights(store, alert.suite, alert.machine_class, 1, before=started + _INSTANT, read_only=True)
    for night in nights:
        if night.started == started:
            return night
    raise BotError(
        f"alert {alert.key}: {store.location} has no night of {started:%Y-%m-%d %H:%M} UTC of {alert.suite} on "
        f"{alert.machine_class} any more; bisect it by --good, --bad and --tests"
    )


def environment_between(good: NightSummary, bad: NightSummary) -> tuple[str, ...]:
    """What differs between two nights beside the subject: the fingerprint's fields, the harness, how was measured, and
    what else the build brought."""
    own = (f"wheels.{normalised_name(good.build.subject)}", "commit", "version", "subject")
    told = [
        f"{one.group} {one.field}: {one.old or 'nothing'} became {one.new or 'nothing'}"
        for one in differences(good, bad)
        if not (one.group == "build" and one.field in own) and one.field != "fingerprint"
    ]
    more = len(told) - MOST_DIFFERENCES
    kept = [one_line(text) for text in told[:MOST_DIFFERENCES]]
    return (*kept, *((f"{more} more differences",) if more > 0 else ()))
