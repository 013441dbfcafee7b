"""What the nights of a class leave behind: segments, evidence that is kept, what waits for a second night, alerts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from baselines.confirming.exact_measured import ExactMeasured
from baselines.noisy import NoisyTest
from baselines.series import UtcTime
from torchbenchmark.quantity import counted

SCHEMA = 1

ChangeKind = Literal["regression", "improvement"]


@dataclass(frozen=True)
class SeriesKey:
    """One channel of one test."""

    test: str
    channel: str


class _Schema(BaseModel):
    # Evidence may be beyond any number. JSON has none for that, and what is stored has to be read again.
    model_config = ConfigDict(extra="forbid", populate_by_name=True, ser_json_inf_nan="strings")


class Onset(_Schema):
    """The nights whose builds may have brought a change."""

    low: UtcTime
    high: UtcTime

    def overlaps(self, other: "Onset") -> bool:
        return self.low <= other.high and other.low <= self.high

    def within(self, other: "Onset") -> "Onset":
        return Onset(low=max(self.low, other.low), high=min(self.high, other.high))


class Carried(_Schema):
    """Evidence of a candidate that was neither confirmed nor futile. It stands for the night that it began in, whose
    error pays for it."""

    since: UtcTime
    candidates: int  # admitted in that night
    kind: ChangeKind
    log_ratios: tuple[float, ...]


class Pending(_Schema):
    """A confirmed change that waits for a second night."""

    kind: ChangeKind
    base: UtcTime  # the night of the last good build
    confirmed: UtcTime
    onset: Onset
    pair_sd: float


class SeriesState(_Schema):
    """One series, where it is not as every series begins."""

    segment: UtcTime | None = None  # its first night; None: of the first one
    prior: float | None = None  # the level as it is known from before that night, in log units
    weight: float = 0.0  # nights that it counts for
    resting: int = 0  # nights until another try
    futile: int = 0  # tries in a row
    score: float = 0.0  # of the last futile one
    carried: Carried | None = None
    pending: Pending | None = None


class Era(_Schema):
    """A time in which the machine and the harness moved no numbers."""

    environment: str
    runner: str
    since: UtcTime
    shifts: dict[str, float] = Field(default_factory=dict)  # of a series against the first environment, in log units


class PendingBuild(_Schema):
    """A build that moved most of the class, waiting for a second night."""

    night: UtcTime
    kind: ChangeKind
    effects: dict[str, float]  # of every series that it moved


class Failing(_Schema):
    """A test that fails since lately, and of which that is not settled."""

    since: UtcTime
    nights: int = 0  # on which it stood


class Interval(_Schema):
    """What people see of a change: the effect of new pairs, as shares, slower being positive."""

    test: str
    channel: str
    base: UtcTime
    head: UtcTime
    effect: float
    low: float
    high: float


class Filed(_Schema):
    """A change of a class: one alert, with all that was found to belong to it."""

    id: str
    kind: Literal["regression", "improvement", "environment"]
    night: UtcTime
    onset: Onset
    series: tuple[str, ...] = ()
    intervals: tuple[Interval, ...] = ()
    moved: dict[str, float] = Field(default_factory=dict)  # effects, as shares, of series without an interval
    of_a_build: bool = False  # that moved most of the class
    why: str = ""

    def effects(self) -> dict[str, float]:
        """By test, the largest of its channels': a share, slower is positive."""
        found: dict[str, float] = {}
        shown = [(one.test, one.effect) for one in self.intervals]
        shown += [(test_of(name), effect) for name, effect in self.moved.items()]
        for test, effect in shown:
            found[test] = effect if test not in found else max(found[test], effect, key=abs)
        return found


class Accounts(_Schema):
    """How often what was nothing was taken for something, and what it cost."""

    nights: int = 0
    screened: int = 0  # series looked at
    candidates: int = 0
    confirmed: int = 0
    filed: int = 0
    exact_asked: int = 0  # status and count changes
    exact_confirmed: int = 0
    exact_flaky: int = 0
    aa_tries: int = 0  # tonight's build against itself
    aa_confirmed: int = 0
    aa_covered: int = 0  # intervals that hold 0
    aa_effects: dict[str, list[float]] = Field(default_factory=dict)  # by channel: of the newest tries
    aa_half_widths: dict[str, list[float]] = Field(default_factory=dict)  # of the intervals of the newest of these


class Rates(_Schema):
    """What the accounts come to in thirty nights, or in all of fewer."""

    nights: int  # that they are of
    screened: float
    candidates: float
    confirmed: float
    filed: float
    aa_tries: int  # in all: tonight's build against itself
    aa_confirmed: int
    aa_covered: int


class Measured(_Schema):
    """One candidate of a night, and what its pairs said."""

    test: str
    channel: str
    kind: ChangeKind
    verdict: Literal["confirmed", "futile", "undecided", "continue"]
    base: UtcTime  # the night of the build that it was held against
    onset: Onset
    pairs: int
    effect: float  # of the pairs, as a share; slower is positive
    e_value: float
    threshold: float


class Gone(_Schema):
    """Whether the change of a test is gone, by pairs of the build from before it against tonight's."""

    test: str
    channel: str
    base: UtcTime  # the night of that build
    answer: Literal["gone", "there", "undecided", "not measured"]
    pairs: int = 0  # that ended well; 0 of a build against itself, where there is nothing to measure
    effect: float = 0.0  # of the pairs, as a share; slower is positive
    limit: float = 0.0  # what it is below when it is gone

    @property
    def sentence(self) -> str:
        told = {"there": "still there"}.get(self.answer, self.answer)
        if self.pairs:
            told += f", {self.effect:+.2%} in {counted(self.pairs, 'pair')} (gone below {self.limit:+.2%})"
        elif self.answer == "gone":
            told += ", as tonight's build is that one"
        return f"{self.test} {self.channel} against the build of {self.base:%Y-%m-%d %H:%M}: {told}"


class Closing(_Schema):
    """An alert whose tests are good again, or may be, and what pairs said of it."""

    alert: str  # its key
    asked: tuple[Gone, ...] = ()  # of no test: there is no build from before it that the night could name
    doubted: bool = False  # the night's figures may be the machine's, and no closing hangs on it

    @property
    def answer(self) -> Literal["gone", "there", "undecided", "not measured"]:
        """Of the alert: it is there if one of its tests is, and gone if all that could be measured are."""
        answers = {one.answer for one in self.asked}
        for told in ("there", "undecided", "gone"):
            if told in answers:
                return told
        return "not measured"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was asked, and what pairs said, a line each."""
        why = "asked in doubt" if self.doubted else "recovered"
        if not self.asked:
            return (f"{why}: an alert whose build from before is not known any more: not measured",)
        return tuple(f"{why}: {one.sentence}" for one in self.asked)


class NightOutcome(_Schema):
    """What a night came to."""

    night: UtcTime
    tried: tuple[Measured, ...] = ()
    gone: tuple[str, ...] = ()  # series confirmed earlier that new pairs did not show again
    waiting: tuple[str, ...] = ()  # series confirmed by now and not filed yet
    without_base: tuple[str, ...] = ()  # series that no build before can be had for, to measure them again
    resting: tuple[str, ...] = ()  # series that are suspected still, and rest as pairs did not show it lately
    not_tried: tuple[str, ...] = ()  # suspected series beyond as many as a night tries
    exact: tuple[ExactMeasured, ...] = ()  # status and count changes, asked again
    filed: tuple[Filed, ...] = ()
    notes: tuple[str, ...] = ()
    processes: int = 0  # measured for it
    margins: dict[str, float] = Field(default_factory=dict)  # by channel, as shares: those that were estimated
    rates: Rates | None = None
    closings: tuple[Closing, ...] | None = None  # alerts asked about, to be closed or in doubt; None: nobody asked
    not_closed: str = ""  # why alerts to be closed or in doubt could not be asked about: they stay as they are
    not_asked_elsewhere: str = ""  # why what was confirmed was not asked on a second runner, where there is to be one
    not_measured: str = ""  # why nothing could be measured again; such an outcome is told, and is in no state

    @property
    def confirmed(self) -> tuple[Measured, ...]:
        return tuple(one for one in self.tried if one.verdict == "confirmed")


class ClassState(_Schema):
    """A class of machines."""

    kind: Literal["confirming"] = "confirming"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    nonce: str = ""  # of the last writer: no two writes have the same bytes
    series: dict[str, SeriesState] = Field(default_factory=dict)
    eras: list[Era] = Field(default_factory=list)
    aligned: bool = False  # whether the environments of its first nights were
    bucket: float = 0.0  # pairs that may be measured
    build: PendingBuild | None = None
    failing: dict[str, Failing] = Field(default_factory=dict)  # by test
    counts: dict[str, float] = Field(default_factory=dict)  # by series: what it is confirmed to count by now
    flaky: dict[str, int] = Field(default_factory=dict)  # by series, a count: nights that it rests still
    filed: list[Filed] = Field(default_factory=list)  # the newest last
    next_id: int = 1
    accounts: Accounts = Field(default_factory=Accounts)
    last_night: UtcTime | None = None
    accepted: list[str] = Field(default_factory=list)  # keys of alerts whose level began a segment, the newest last
    noisy: dict[str, NoisyTest] = Field(
        default_factory=dict
    )  # by test: what people have called noise, as of that night
    outcome: NightOutcome | None = None  # of that night: concluding it again comes to the same
    concluded: UtcTime | None = (
        None  # the newest night whose outcome is in the alerts: one that is not was killed there
    )

    def of(self, key: SeriesKey) -> SeriesState:
        return self.of_name(name_of(key))

    def of_name(self, name: str) -> SeriesState:
        return self.series.setdefault(name, SeriesState())

    @property
    def nights_needed(self) -> set[datetime]:
        """Whose builds may be measured again, however old they get: the first of each segment, and those that what
        waits for its second look was held against, and was found on."""
        found = {one.segment for one in self.series.values() if one.segment is not None}
        for one in self.series.values():
            if one.pending is not None:
                found |= {one.pending.base, one.pending.confirmed}
        return found

    @property
    def builds_that_moved_most(self) -> list[tuple[datetime, datetime]]:
        """(when it was told, whose build) of each that is stored still. They are held against the night before."""
        told = [(one.night, one.onset.low) for one in self.filed if one.of_a_build]
        return told if self.build is None else [*told, (self.build.night, self.build.night)]

    @property
    def environment_since(self) -> datetime | None:
        """Since when the newest shifts hold, if there are any. A harmless new fingerprint goes on with the old ones."""
        new = (
            era.since
            for number, era in enumerate(self.eras)
            if era.shifts and all(era.shifts != other.shifts for other in self.eras[:number])
        )
        return max(new, default=None)

    def era_of(self, night: datetime, environment: str) -> Era | None:
        """The newest era of an environment that had begun by then."""
        found = (era for era in reversed(self.eras) if era.environment == environment and era.since <= night)
        return next(found, None)


def name_of(key: SeriesKey) -> str:
    """A series in stored state."""
    return f"{key.test} {key.channel}"


def test_of(name: str) -> str:
    """The test of a series in stored state."""
    return name.rpartition(" ")[0]


def common(onsets: Iterable[Onset]) -> Onset | None:
    """The nights that all have in common; None if there is none."""
    found = list(onsets)
    low, high = max(one.low for one in found), min(one.high for one in found)
    return Onset(low=low, high=high) if low <= high else None
