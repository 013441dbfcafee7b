"""The rolling baseline of a series: the median over the last valid nights of its segment."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from baselines.series import NightSummary, Segment, Statistic, location, segment
from torchbenchmark.channels import CHANNELS

_EXACT = 1e-9  # shares are quotients of small counts: 4 of 5 is meant to reach 80 %


@dataclass(frozen=True)
class Mask:
    """The time of an alert, in which the nights of its tests are no baseline: a slow night must not become what is
    normal, neither while the alert is open nor when it is closed and forgotten."""

    since: datetime
    until: datetime | None = None  # the first night that is good again
    since_open: bool = True  # the alert is open still
    accepted: bool = False  # a person took its level for what is normal: what was before that is masked

    def holds(self, time: datetime) -> bool:
        return self.since <= time and (self.until is None or time < self.until)

    def __str__(self) -> str:
        if self.accepted:
            return f"the time before the level that was accepted from {self.until:%Y-%m-%d} on"
        if self.since_open:
            return f"the alert open since {self.since:%Y-%m-%d}"
        return f"the alert of {self.since:%Y-%m-%d}"


@dataclass(frozen=True)
class ValidNights:
    """Which nights may become a baseline, and how many of them do."""

    nights: int
    min_coverage: float
    masks: tuple[Mask, ...] = ()

    def covers(self, night: NightSummary) -> bool:
        return night.coverage >= self.min_coverage - _EXACT

    def mask_of(self, night: NightSummary) -> Mask | None:
        return next((mask for mask in self.masks if mask.holds(night.started)), None)


@dataclass(frozen=True)
class Baseline:
    """The value, or why there is none."""

    segment: Segment
    value: float | None
    nights: int = 0
    reason: str = ""
    newest: datetime | None = None  # when the newest of these nights started


def rolling_baseline(
    tonight: NightSummary,
    history: Sequence[NightSummary],
    test: str,
    channel: str,
    statistic: Statistic,
    valid: ValidNights,
) -> Baseline:
    """Median of the last valid nights' locations. `history` is oldest first, without tonight."""
    comparable = segment(tonight, history, test, channel)
    valid = valid_within(valid, comparable.nights[0].started if comparable.ended_by and comparable.nights else None)
    values: list[float] = []
    newest: datetime | None = None
    unusable: Counter[str] = Counter()
    for night in reversed(comparable.nights):
        value = _value_or_reason(night, test, channel, statistic, valid)
        if isinstance(value, str):
            unusable[value] += 1
        else:
            values.append(value)
            newest = newest or night.started
        if len(values) == valid.nights:
            break
    if values:
        return Baseline(comparable, location(values), len(values), newest=newest)
    found = ", ".join(f"{count} {reason}" for reason, count in unusable.items()) or "none"
    ended = f"; before that: {comparable.reason}" if comparable.ended_by else ""
    return Baseline(comparable, None, reason=f"no valid night in the segment: {found}{ended}")


def valid_within(valid: ValidNights, began: datetime | None) -> ValidNights:
    """Without the masks that began before the segment, where something ended it: an alert tells of a test as it was,
    and of nothing that came after a change of workload or environment. None: nothing ended it. An accepted level is
    what is normal inside the segment too."""
    if began is None or not valid.masks:
        return valid
    return replace(valid, masks=tuple(mask for mask in valid.masks if mask.accepted or mask.since >= began))


def _value_or_reason(
    night: NightSummary, test: str, channel: str, statistic: Statistic, valid: ValidNights
) -> float | str:
    summary = night.tests.get(test)
    if not valid.covers(night):
        return f"with coverage under {valid.min_coverage:.0%}"
    if (mask := valid.mask_of(night)) is not None:
        return f"inside {mask}"
    if summary is None or not summary.ok:
        return "without the test ok"
    if channel not in summary.channels:
        return f"without {channel}"
    value = summary.channels[channel].location(statistic)
    return value if is_usable(channel, value) else f"with {channel} {value:g}, not a positive number"


def is_usable(channel: str, value: float) -> bool:
    """A count may be 0; of anything else 0 was not measured, and no ratio can be formed with it."""
    counted = channel in CHANNELS and CHANNELS[channel].exact
    return math.isfinite(value) and (value > 0 or (counted and value == 0))
