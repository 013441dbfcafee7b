"""An alert: what people see as one issue, as it is stored, and which nights it keeps out of what is normal."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from baselines.confirming.state import Interval
from baselines.rolling import Mask
from baselines.series import UtcTime
from bot.github.bisected import Bisected
from bot.github.decisions import Acknowledged, Noise, Snoozed
from bot.inside import Inside

NIGHTS_KEPT = 60  # in an alert, so that it stays small however long it lives
RECOVERED = "recovered"
_INSTANT = timedelta(microseconds=1)
_EVER = datetime.min.replace(tzinfo=UTC)
Kind = Literal["regression", "failure"]
KINDS: tuple[Kind, ...] = ("regression", "failure")
Announced = Literal["improvement", "count", "environment"]  # told once (announcements.py), with no life of its own
Findings = Mapping[str, str]  # test id or "total" -> what was found, such as "+61.2%"


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class AlertNight(_Schema):
    """What one night said of an alert's tests."""

    run: str
    started: UtcTime
    build: str
    findings: dict[str, str]
    note: str = ""


class Episode(_Schema):
    """A time in which an alert was open before, and in which the tests were slow or failed."""

    since: UtcTime
    until: UtcTime


class Accepted(_Schema):
    """That a person took the level of an alert for what is normal."""

    at: UtcTime
    by: str
    since: dict[str, UtcTime]  # by test, the first night of that level


class Alert(_Schema):
    """One alert, as stored."""

    key: str  # hidden in the issue, by which it is found again
    kind: Kind | Announced
    suite: str
    machine_class: str = Field(alias="class")
    revision: int = 0  # grows with every change: what is filed of it never goes back to an older one
    opened: UtcTime  # since when it is open, or was open the last time
    good_until: UtcTime | None = None  # the newest night before that in which all was well
    earlier: tuple[Episode, ...] = ()  # when it was open before
    closed: UtcTime | None = None
    closed_because: str = ""
    tests: tuple[str, ...]  # every test it ever had; "total" if only the total moved
    recovered_since: UtcTime | None = None  # the first of the good nights in a row
    recovered_nights: int = 0
    incomparable_nights: int = 0  # in a row
    nights: tuple[AlertNight, ...]
    signal: str = ""  # the confirmed change that opened it; empty: the limits alone did
    effects: dict[str, float] = Field(default_factory=dict)  # by test, as confirmed: a share, slower is positive
    intervals: tuple[Interval, ...] = ()  # what pairs showed of its tests when they were filed
    attribution: Inside | None = None  # what got slower inside, the last time that it was profiled
    accepted: Accepted | None = None  # then it is closed, and no relapse opens it again
    acknowledged: Acknowledged | None = None
    snoozed: Snoozed | None = None
    noise: Noise | None = None  # then it is closed, and no relapse opens it again
    merged_into: str = ""  # key of the alert that has its tests since; then it is closed
    evidence: str = ""  # what the newest night with a finding showed, as Markdown
    bisected: Bisected | None = None  # which commit it was, the last time that somebody has bisected it
    filed: UtcTime | None = None  # when it was handed to the tracker first
    issue: str = ""  # the address of its issue, where the tracker has told
    told: tuple[str, ...] = ()  # events that a message was sent of

    @property
    def verdict(self) -> Bisected | None:
        """What a bisection has come to, this time: a relapse may have another culprit."""
        return self.bisected if self.bisected is not None and self.bisected.episode == len(self.earlier) else None

    @property
    def culprit(self) -> str | None:
        """The one commit that a bisection has come to, this time."""
        verdict = self.verdict
        if verdict is None or verdict.verdict != "culprit" or len(verdict.changes) != 1:
            return None
        (change,) = verdict.changes
        return change.commits[0].commit if len(change.commits) == 1 and not change.more else None

    @property
    def is_open(self) -> bool:
        return self.closed is None

    @property
    def is_acknowledged(self) -> bool:
        """This time: a relapse is to be acknowledged anew."""
        return self.acknowledged is not None and self.acknowledged.episode == len(self.earlier)

    @property
    def inside(self) -> Inside | None:
        """What got slower inside, if it was profiled since the alert was opened the last time."""
        known = self.attribution
        return known if known is not None and known.episode == len(self.earlier) else None

    @property
    def is_announcement(self) -> bool:
        return self.kind not in KINDS

    @property
    def has_recovered(self) -> bool:
        """Closed as its tests were good again; otherwise they could not be compared any more, and what comes is new."""
        return self.closed_because.startswith(RECOVERED)

    @property
    def newest_finding(self) -> AlertNight | None:
        """The newest night in which something was found."""
        found = [night for night in self.nights if night.findings]
        return max(found, key=lambda night: night.started, default=None)

    def knows(self, run: str) -> bool:
        return any(night.run == run for night in self.nights)


def masks(alerts: Iterable[Alert], tonight: datetime | None = None) -> dict[str, list[Mask]]:
    """Per test, or "total": the times inside an alert. They stay masked when the alert is closed: the slow nights in
    it were slow. Of an alert that was accepted it is the time before its level, and of noise none; but a night that
    began before that, `tonight`, goes on as if it were open still, or it would not come to the same after a kill."""
    found: dict[str, list[Mask]] = {}
    for alert in alerts:
        if alert.is_announcement:
            continue
        if alert.noise is not None and (tonight is None or alert.noise.at <= tonight):
            continue  # nothing was slow: its nights are what is normal
        later = alert.accepted is not None and tonight is not None and alert.accepted.at > tonight
        if alert.accepted is not None and not later:
            for test, since in alert.accepted.since.items():
                found.setdefault(test, []).append(Mask(_EVER, since, since_open=False, accepted=True))
            continue
        is_open = alert.is_open or later or _was_open_until(alert)
        until = None if is_open else alert.recovered_since or alert.closed
        now = Mask(alert.opened, until, since_open=is_open)
        before = [Mask(episode.since, episode.until, since_open=False) for episode in alert.earlier]
        for test in alert.tests:
            found.setdefault(test, []).extend([now, *before])
        for night in alert.nights:
            if not any(mask.holds(night.started) for mask in (now, *before)):  # told late, before good nights
                for test in night.findings:
                    found[test].append(Mask(night.started, night.started + _INSTANT, since_open=False))
    return found


def _was_open_until(alert: Alert) -> bool:
    """Of what is called noise: whether that has closed it."""
    return alert.noise is not None and alert.closed == alert.noise.at
