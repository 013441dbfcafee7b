"""A person says that an alert was nothing: it is closed, its tests must go further to be called again for a month, and
it counts against the bot's precision. `/noise` in a comment and `torchbench alerts noise`."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from baselines.noisy import NoisyTest
from baselines.store import Store
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.decisions import Noise
from bot.triage.deciding import because, decide
from torchbenchmark.foreign_text import one_line

LASTS = timedelta(days=30)
_SHARE = re.compile(r"([+-]?\d+(?:\.\d+)?)%")


def call_noise(
    store: Store, suite: str, machine_class: str, key: str, *, by: str, why: str = "", now: datetime | None = None
) -> Alert:
    """Call an alert noise, be it open or recovered. Returns the alert, which is closed; one that was called so already
    is returned as it is.

    Raises BotError, and has changed nothing, if there is no such alert, or it tells of nothing that can be noise.
    """
    at = now or datetime.now(UTC)

    def change(alert: Alert, where: str) -> Alert:
        if alert.noise is not None:
            return alert
        if alert.kind in ("count", "environment"):
            told = "counts, which are exact" if alert.kind == "count" else "the environment"
            raise BotError(f"{where}: alert {key} tells of {told}; there is no noise in that")
        if alert.accepted is not None or alert.merged_into:
            raise BotError(f"{where}: alert {key} is closed already: {alert.closed_because}")
        return alert.model_copy(
            update={
                "noise": Noise(at=at, by=by, why=one_line(why), until=at + LASTS, widths=_widths(alert)),
                "closed": alert.closed or at,
                "closed_because": f"called noise by {by}{because(why)}",
                "recovered_since": None if alert.is_open else alert.recovered_since,
                "recovered_nights": 0,
            }
        )

    return decide(store, suite, machine_class, key, by, change, verb="called noise")


def noisy_tests(alerts: Iterable[Alert], tonight: datetime) -> dict[str, NoisyTest]:
    """By test, or "total", what was called noise and is so still for a night. What was called so after the night began
    is left to the next one, so that a night that was killed comes to the same."""
    found: dict[str, NoisyTest] = {}
    for alert in alerts:
        if (noise := alert.noise) is None or not noise.at <= tonight < noise.until:
            continue
        for test, width in noise.widths.items():
            before = found.get(test, NoisyTest(since=noise.at, until=noise.until, width=0.0))
            found[test] = NoisyTest(
                since=max(before.since, noise.at),
                until=max(before.until, noise.until),
                width=max(before.width, width),
            )
    return found


def _widths(alert: Alert) -> dict[str, float]:
    """How far each test was found to go, in either direction; of what is slower by 25 %, and faster by 20 %, 25 %."""
    if alert.kind == "failure":
        return dict.fromkeys(alert.tests, 0.0)
    found = [(one.test, one.effect) for one in alert.intervals] + list(alert.effects.items())
    for night in alert.nights:
        shares = ((test, _SHARE.fullmatch(told)) for test, told in night.findings.items())
        found += [(test, float(share[1]) / 100) for test, share in shares if share is not None]
    widths = dict.fromkeys(alert.tests, 0.0)
    for test, effect in found:
        if test in widths and effect > -1:
            widths[test] = max(widths[test], effect, 1 / (1 + effect) - 1)
    return widths
