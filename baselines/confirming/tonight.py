"""The night that all steps of it share: what it looks at, what is known of its series, what it spends and comes to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from baselines.confirming.bench import Bench
from baselines.confirming.exact_measured import ExactMeasured
from baselines.confirming.levels import Rows
from baselines.confirming.rates import rates_of
from baselines.confirming.rules import Rules
from baselines.confirming.seen import UNKNOWN_PAIR_SD, Seen, SeriesKey, night_noise, pair_sds, right_aligned
from baselines.confirming.shares import share_of
from baselines.confirming.state import (
    ClassState,
    Filed,
    Interval,
    Measured,
    NightOutcome,
    Onset,
    SeriesState,
    name_of,
)
from baselines.confirming.trials import Again, Tried
from baselines.screening.noise import FloatArray, IntArray

HISTORY_FOR_ONSET = 30  # nights that an onset is looked for in
WAITING_NIGHTS = 14  # for an answer on another night: then what was confirmed is a candidate like others


@dataclass
class Outcome:
    """What a night came to."""

    filed: list[Filed] = field(default_factory=list)  # new ones, and updates of earlier ones under their id
    tried: list[Tried] = field(default_factory=list)
    again: list[Again] = field(default_factory=list)
    intervals: list[tuple[Interval, bool]] = field(default_factory=list)  # and whether of a confirmed change
    # Of every series, by its nights alone, before any limit.
    ranks: FloatArray = field(default_factory=lambda: np.empty(0), compare=False)
    exact: list[ExactMeasured] = field(default_factory=list)  # status and count changes
    without_base: list[str] = field(default_factory=list)  # candidates whose good builds are all gone
    resting: list[str] = field(default_factory=list)  # series that would be candidates, had they not been futile lately
    not_tried: list[str] = field(default_factory=list)  # ... were there not better ones, as many as a night tries
    notes: list[str] = field(default_factory=list)
    pairs: int = 0
    bridged: int = 0  # processes
    exact_processes: int = 0

    @property
    def confirmed(self) -> list[SeriesKey]:
        """Tonight, whether or not filed."""
        return [one.trial.key for one in self.tried if one.decision.verdict == "confirmed"]

    @property
    def processes(self) -> int:
        return 2 * self.pairs + self.bridged + self.exact_processes


@dataclass(frozen=True)
class Named:
    """A candidate that another rule has found: the limits that people know, held against the nights before."""

    key: SeriesKey
    effect: float  # ln(tonight / baseline)
    base: datetime  # the newest night of the baseline
    recovered: datetime | None = None  # the night that closed its last alert: the limits know of it, not the segment


class Tonight:
    """One night in work. Its steps change `state` and `outcome`, and look again where that changes the rows."""

    rows: Rows
    nights: IntArray  # (series, columns of the rows): which night a column is; -1 for none
    segments: IntArray  # (series,): the first night of the segment

    def __init__(self, seen: Seen, state: ClassState, bench: Bench, rules: Rules, named: Sequence[Named] = ()) -> None:
        self.seen, self.state, self.bench, self.rules, self.outcome = seen, state, bench, rules, Outcome()
        self.names = [name_of(key) for key in seen.series]
        self.margins = np.array([rules.margin_of(key.channel, key.test) for key in seen.series])
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self.named = {name_of(one.key): one for one in named if one.base in seen.nights}
        self.asked: dict[SeriesKey, tuple[Onset, datetime]] = {}  # tonight: when it may have come in, and the base
        self.of_build: set[int] = set()  # series that a build moved with most others, tonight
        self.look()

    @property
    def is_young(self) -> bool:
        return len(self.seen.nights) <= self.rules.burn_in

    def look(self) -> None:
        """The rows, of the segments and shifts that are known now."""
        seen, state = self.seen, self.state
        logs = seen.logs - self._shifts_of_nights()
        aligned, nights = right_aligned(logs)
        self.nights = nights
        first = np.zeros(len(self.names), dtype=np.int64)
        prior, weight = np.full(len(first), np.nan), np.zeros(len(first))
        for name, one in state.series.items():
            row = self.row_of.get(name)
            if row is None:
                continue
            if one.segment is not None:
                first[row] = self._at_or_after(one.segment)
            if one.prior is not None:
                prior[row], weight[row] = one.prior, one.weight
        self.segments = first
        since = state.environment_since
        changed = 0 if since is None else self._at_or_after(since)
        noise, pair_sd = night_noise(aligned), pair_sds(seen.variances, seen.processes)
        of_nights = np.where(np.isfinite(noise), math.sqrt(2) * noise, UNKNOWN_PAIR_SD)
        self.rows = Rows(
            logs=aligned,
            noise=noise,
            pair_sd=np.where(np.isfinite(pair_sd), pair_sd, of_nights),  # of one process a night: no larger
            segment=self._columns(first),
            began=self._columns(np.maximum(first, changed)),
            prior=prior,
            weight=weight,
        )

    def _at_or_after(self, night: datetime) -> int:
        return next((index for index, one in enumerate(self.seen.nights) if one >= night), len(self.seen.nights) - 1)

    def _columns(self, nights: IntArray) -> IntArray:
        """The column of the first night of a row that is not before the given one."""
        return (self.nights < nights[:, None]).sum(axis=1)

    def _shifts_of_nights(self) -> FloatArray:
        shifts = np.zeros(self.seen.logs.shape)
        kept: dict[int, FloatArray] = {}
        for night, (when, environment_then) in enumerate(zip(self.seen.nights, self.seen.environments, strict=True)):
            era = self.state.era_of(when, environment_then)
            if era is None or not era.shifts:
                continue
            if id(era) not in kept:
                kept[id(era)] = np.array([era.shifts.get(name, 0.0) for name in self.names])
            shifts[:, night] = kept[id(era)]
        return shifts

    def nights_since(self, night: datetime) -> int:
        return sum(one > night for one in self.seen.nights)

    def good_night(self, row: int, latest: int) -> int | None:
        """The newest night up to one whose build can still be measured, back to the first of the segment, whose build
        is kept in the store while the segment lives."""
        earliest = min(latest, max(int(self.segments[row]), latest - HISTORY_FOR_ONSET))
        nights = [*range(latest, max(0, earliest) - 1, -1)]
        one = self.state.series.get(self.names[row])
        if one is not None and one.segment in self.seen.nights and self.segments[row] < earliest:
            nights.append(int(self.segments[row]))
        return next((night for night in nights if self.bench.has(self.seen.builds[night])), None)

    def is_there(self, row: int) -> bool:
        return bool(self.seen.there[row])

    def spend(self, pairs: int) -> None:
        self.outcome.pairs += pairs
        self.state.bucket -= pairs

    def rest(self, one: SeriesState, score: float) -> None:
        rests = self.rules.rests
        # Of a young series nothing can be said; it was tried as people were told of it.
        one.resting, one.score = rests[min(one.futile, len(rests) - 1)], score if math.isfinite(score) else 0.0
        one.futile += 1
        one.carried = None

    def told(self) -> NightOutcome:
        outcome = self.outcome
        return NightOutcome(
            night=self.seen.tonight,
            tried=tuple(
                Measured(
                    test=one.trial.key.test,
                    channel=one.trial.key.channel,
                    kind=one.trial.kind,
                    verdict=one.decision.verdict,
                    base=self.asked[one.trial.key][1],
                    onset=self.asked[one.trial.key][0],
                    pairs=one.decision.pairs,
                    effect=share_of(one.effect),
                    e_value=one.decision.e_value,
                    threshold=one.decision.threshold,
                )
                for one in outcome.tried
            ),
            gone=tuple(name_of(one.trial.key) for one in outcome.again if not one.persistent),
            waiting=tuple(name for name, one in self.state.series.items() if one.pending is not None),
            without_base=tuple(outcome.without_base),
            resting=tuple(outcome.resting),
            not_tried=tuple(outcome.not_tried),
            exact=tuple(outcome.exact),
            filed=tuple(outcome.filed),
            notes=tuple(outcome.notes),
            processes=outcome.processes,
            margins={channel: share_of(margin) for channel, margin in self.rules.margins.items()},
            rates=rates_of(self.state.accounts),
        )
