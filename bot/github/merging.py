"""Two alerts that turn out one: a bisection has found the same commit for both. Pure rules."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from bot.github.alert import KINDS, Alert

MERGED = "the same culprit"  # how the reason begins


def merge_same_culprits(alerts: Sequence[Alert], now: datetime) -> tuple[Alert, ...]:
    """All alerts, of those that are open and have one culprit only the eldest open: it has the tests of the others, and
    they are closed as its duplicates. What is slower and what fails stay apart, as they recover by other rules."""
    after = {alert.key: alert for alert in alerts}
    for kind in KINDS:
        for commit, several in _by_culprit(alert for alert in alerts if alert.kind == kind).items():
            elder, *younger = sorted(several, key=lambda one: (one.nights[0].started, one.key))
            for one in younger:
                after[elder.key] = _joined(after[elder.key], one)
                after[one.key] = _closed(one, elder, commit, now)
    return tuple(after.values())


def _by_culprit(alerts: Iterable[Alert]) -> dict[str, list[Alert]]:
    found: dict[str, list[Alert]] = {}
    for alert in alerts:
        if alert.is_open and alert.culprit is not None:
            found.setdefault(alert.culprit, []).append(alert)
    return found


def _joined(elder: Alert, younger: Alert) -> Alert:
    """The elder with the tests of the younger, and what is known of them."""
    mine = set(elder.tests)
    known = [one.good_until for one in (elder, younger) if one.good_until is not None]
    return elder.model_copy(
        update={
            "tests": tuple(sorted({*mine, *younger.tests})),
            "effects": {**younger.effects, **elder.effects},
            "intervals": (*elder.intervals, *(one for one in younger.intervals if one.test not in mine)),
            "opened": min(elder.opened, younger.opened),
            "good_until": min(known, default=None),
            "recovered_since": None,
            "recovered_nights": 0,
            "revision": elder.revision + 1,
        }
    )


def _closed(younger: Alert, elder: Alert, commit: str, now: datetime) -> Alert:
    where = f"[`{elder.key}`]({elder.issue})" if elder.issue else f"`{elder.key}`"
    return younger.model_copy(
        update={
            "merged_into": elder.key,
            "closed": now,
            "closed_because": f"{MERGED}, `{commit[:12]}`, as of alert {where}, which has its tests now",
            "revision": younger.revision + 1,
        }
    )
