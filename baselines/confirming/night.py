"""One night, from what it measured to what is filed: the environment, what waits, the new candidates, in this order.

What was filed in the state before is never taken back. Asked again with the same state and a bench that answers the
same, a night comes to the same: a killed one goes on.
"""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from baselines.confirming import environment
from baselines.confirming.bench import Bench
from baselines.confirming.levels import FEWEST_NIGHTS, Moved, Rows, level_before, moved
from baselines.confirming.margins import with_margins
from baselines.confirming.onset import date_onset
from baselines.confirming.rates import rates_of
from baselines.confirming.rules import Rules
from baselines.confirming.seen import UNKNOWN_PAIR_SD, Seen, SeriesKey, night_noise, pair_sds, right_aligned
from baselines.confirming.state import (
    Carried,
    ChangeKind,
    ClassState,
    Era,
    Filed,
    Interval,
    Measured,
    NightOutcome,
    Onset,
    Pending,
    PendingBuild,
    SeriesState,
    common,
    name_of,
)
from baselines.confirming.trials import Again, Trial, Tried, are_there, ask_again, intervals, try_all
from baselines.screening.noise import FloatArray, IntArray, row_medians
from baselines.screening.shift_test import BoolArray

HISTORY_FOR_ONSET = 30  # nights that an onset is looked for in
WAITING_NIGHTS = 14  # for an answer on another night: then what was confirmed is a candidate like others
NEWCOMERS_NIGHTS = 5  # of a new series on each of several runners, which tell what it differs by between them
JOINED_NIGHTS = 3  # after a note on the environment: another runner that follows is told there
STRAGGLERS_NIGHTS = 21  # after a build that moved most of the class
_FIRST = 1e6  # above any score
KEPT_FILED = 200
KEPT_EFFECTS = 400


@dataclass
class Outcome:
    """What a night came to."""

    filed: list[Filed] = field(default_factory=list)  # new ones, and updates of earlier ones under their id
    tried: list[Tried] = field(default_factory=list)
    again: list[Again] = field(default_factory=list)
    intervals: list[tuple[Interval, bool]] = field(default_factory=list)  # and whether of a confirmed change
    # Of every series, by its nights alone, before any limit.
    ranks: FloatArray = field(default_factory=lambda: np.empty(0), compare=False)
    without_base: list[str] = field(default_factory=list)  # candidates whose good builds are all gone
    notes: list[str] = field(default_factory=list)
    pairs: int = 0
    bridged: int = 0  # processes

    @property
    def confirmed(self) -> list[SeriesKey]:
        """Tonight, whether or not filed."""
        return [one.trial.key for one in self.tried if one.decision.verdict == "confirmed"]

    @property
    def processes(self) -> int:
        return 2 * self.pairs + self.bridged


@dataclass(frozen=True)
class Named:
    """A candidate that another rule has found: the limits that people know, held against the nights before."""

    key: SeriesKey
    effect: float  # ln(tonight / baseline)
    base: datetime  # the newest night of the baseline


def run_night(seen: Seen, state: ClassState, bench: Bench, rules: Rules, named: Sequence[Named] = ()) -> Outcome:
    """Changes `state`, and returns what came of the night. Raises ValueError for a night that the state knows.

    A class that is young has no levels to be far from; until it has, only what is `named` is measured again.
    """
    if state.last_night is not None and seen.tonight <= state.last_night:
        raise ValueError(f"the night of {seen.tonight} was concluded already: {state.last_night} is the newest")
    outcome = Outcome()
    rules = with_margins(rules, state.accounts)
    night = _Night(seen, state, bench, rules, outcome, named)
    night.run()
    state.last_night = seen.tonight
    state.filed = state.filed[-KEPT_FILED:]
    state.outcome = night.told()
    return outcome


class _Night:
    def __init__(
        self, seen: Seen, state: ClassState, bench: Bench, rules: Rules, outcome: Outcome, named: Sequence[Named]
    ) -> None:
        self.seen, self.state, self.bench, self.rules, self.outcome = seen, state, bench, rules, outcome
        self.names = [name_of(key) for key in seen.series]
        self.margins = np.array([rules.margin_of(key.channel) for key in seen.series])
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self.named = {name_of(one.key): one for one in named if one.base in seen.nights}
        self.asked: dict[SeriesKey, tuple[Onset, datetime]] = {}  # tonight: when it may have come in, and the base
        self.of_build: set[int] = set()  # series that a build moved with most others, tonight
        self.rows = self._rows()

    def run(self) -> None:
        seen, state, rules = self.seen, self.state, self.rules
        if self.is_young:
            self._meet_environments(len(seen.nights))
        elif not state.aligned:
            self._meet_environments(len(seen.nights) - 1)
            self._align_environments(len(seen.nights) - 1)
            state.aligned = True
            self.rows = self._rows()
        if self._align_newcomers():
            self.rows = self._rows()
        state.bucket = min(rules.bucket, state.bucket + rules.pairs_a_night)
        state.accounts.nights += 1
        state.accounts.screened += len(seen.series)
        if not self.is_young:
            self._conclude_build()
            self._environment()
        self._waiting()
        self._candidates()
        if not self.is_young:
            self._against_itself()
        self._forget_environments()

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
                    effect=math.expm1(one.effect),
                    e_value=one.decision.e_value,
                    threshold=one.decision.threshold,
                )
                for one in outcome.tried
            ),
            gone=tuple(name_of(one.trial.key) for one in outcome.again if not one.persistent),
            waiting=tuple(name for name, one in self.state.series.items() if one.pending is not None),
            without_base=tuple(outcome.without_base),
            filed=tuple(outcome.filed),
            notes=tuple(outcome.notes),
            processes=outcome.processes,
            margins={channel: math.expm1(margin) for channel, margin in self.rules.margins.items()},
            rates=rates_of(self.state.accounts),
        )

    @property
    def is_young(self) -> bool:
        return len(self.seen.nights) <= self.rules.burn_in

    # --- what is known --------------------------------------------------------------------------------------------

    def _era(self, shifts: dict[str, float], night: int = -1) -> Era:
        seen = self.seen
        return Era(
            environment=seen.environments[night], runner=seen.runners[night], since=seen.nights[night], shifts=shifts
        )

    def _meet_environments(self, nights: int) -> None:
        """Those of the first nights are as they are: nothing was looked at before."""
        for night in range(nights):
            if self.state.era_of(self.seen.nights[night], self.seen.environments[night]) is None:
                self.state.eras.append(self._era({}, night))

    def _rows(self) -> Rows:
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
        return Rows(
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

    def _align_environments(self, nights: int) -> None:
        """Those that took turns in the first nights differ by their medians; none of them is a change. One of a night
        or two is not known yet."""
        nights_of: dict[int, list[int]] = {}
        for night in range(nights):
            era = self.state.era_of(self.seen.nights[night], self.seen.environments[night])
            if era is not None:
                nights_of.setdefault(self.state.eras.index(era), []).append(night)
        if len(nights_of) < 2:
            return
        nights_of = {index: several for index, several in nights_of.items() if len(several) >= FEWEST_NIGHTS}
        self.state.eras = [self.state.eras[index] for index in nights_of]
        nights_of = dict(enumerate(nights_of.values()))
        if not nights_of:
            return
        medians = {index: row_medians(self.seen.logs[:, nights]) for index, nights in nights_of.items()}
        reference = medians[min(medians)]
        for index, median in medians.items():
            shift = median - reference
            self.state.eras[index].shifts = {
                name: float(value) for name, value in zip(self.names, shift, strict=True) if math.isfinite(value)
            }

    def _forget_environments(self) -> None:
        """One that no night of the window ran in is met anew if it comes back: daily new names would pile up."""
        shown = set(self.seen.environments)
        self.state.eras = [era for era in self.state.eras if era.environment in shown]

    def _align_newcomers(self) -> bool:
        """A series that came after the runners were aligned has its own difference between them: that of its first
        nights on each, before much can have happened to it. Whether there was any."""
        found = False
        aligned = [era for era in self.state.eras if era.shifts]
        for row, name in enumerate(self.names):
            lacking = [era for era in aligned if name not in era.shifts]
            if len({era.runner for era in lacking}) < 2:
                continue
            first: dict[str, list[float]] = {}
            for night in np.flatnonzero(np.isfinite(self.seen.logs[row])):
                era = self.state.era_of(self.seen.nights[night], self.seen.environments[night])
                if any(era is one for one in lacking) and len(first.setdefault(era.runner, [])) < NEWCOMERS_NIGHTS:
                    first[era.runner].append(float(self.seen.logs[row, night]))
            known = {runner: statistics.median(logs) for runner, logs in first.items() if len(logs) == NEWCOMERS_NIGHTS}
            if len(known) == len({era.runner for era in lacking}):
                reference = known[lacking[0].runner]
                for era in lacking:
                    era.shifts[name] = known[era.runner] - reference
                found = True
        return found

    # --- the environment ------------------------------------------------------------------------------------------

    def _environment(self) -> None:
        seen, state, rules = self.seen, self.state, self.rules
        why = environment.reasons(seen, self.rows, state, rules)
        known = state.era_of(seen.tonight, seen.environments[-1])
        if not why:
            return
        before = known or self._era_before()
        bases = environment.bridging_bases(seen, state, self.segments)
        bases = environment.measurable(bases, seen, self.segments, self.bench)
        few = environment.quieter_tests(seen, self.rows, rules.bridging_tests)
        bridged = environment.bridge(seen, few, bases, self.bench, rules.bridging_processes)
        self.outcome.bridged += bridged.processes
        believed = np.array([before.shifts.get(name, 0.0) if before else 0.0 for name in self.names])
        found, told = environment.is_environment(bridged, self.rows, bridged.logs - believed, rules)
        self.outcome.notes.append(f"{'; '.join(why)}; {told}")
        if found:
            self._new_environment(bases, believed, f"{'; '.join(why)}; {told}")
            return
        if known is None:
            state.eras.append(self._era(dict(before.shifts) if before else {}))
            self.rows = self._rows()
        share, sign = environment.moved_alike(self.rows, seen.there)
        many = share > rules.share_moved_alike and environment.enough_alike(seen, self.rows, rules)
        if many and bridged.measured.size:
            self._suspect_build(bases, believed, sign)

    def _era_before(self) -> Era | None:
        """The era that the last night on this runner was in, else the newest."""
        mine = [era for era in self.state.eras if era.runner == self.seen.runners[-1]]
        return (mine or self.state.eras or [None])[-1]

    def _new_environment(self, bases: IntArray, believed: FloatArray, why: str) -> None:
        """Every series goes on with the shift that its last good build shows."""
        seen, state, rules = self.seen, self.state, self.rules
        every = range(len(seen.series))
        bridged = environment.bridge(seen, every, bases, self.bench, rules.bridging_processes)
        self.outcome.bridged += bridged.processes
        level, _ = level_before(self.rows, 1)
        shift = np.where(np.isfinite(bridged.logs) & np.isfinite(level), bridged.logs - level, np.nan)
        shifts = {
            name: float(new) if math.isfinite(new) else float(old)
            for name, new, old in zip(self.names, shift, believed, strict=True)
        }
        for row in range(len(self.names)):
            one = state.of(seen.series[row])
            if math.isfinite(shift[row]):
                one.prior, one.weight = float(level[row]), rules.prior_of_an_environment
            else:  # nothing bridges it: it begins anew
                one.prior, one.weight, one.segment = None, 0.0, seen.tonight
            one.carried = None
        state.eras.append(self._era(shifts))
        self.rows = self._rows()
        note = next(
            (
                one
                for one in reversed(state.filed)
                if one.kind == "environment" and self._nights_since(one.night) <= JOINED_NIGHTS
            ),
            None,
        )
        self._file(
            Filed(
                id=note.id if note else self._new_id(),
                kind="environment",
                night=seen.tonight,
                onset=Onset(low=seen.tonight, high=seen.tonight),
                why=why,
            )
        )

    def _nights_since(self, night: datetime) -> int:
        return sum(one > night for one in self.seen.nights)

    # --- a build that moved most of the class ---------------------------------------------------------------------

    def _suspect_build(self, bases: IntArray, believed: FloatArray, sign: int) -> None:
        """The same build as bridged, of every series: which are off it tonight."""
        seen, rules = self.seen, self.rules
        bridged = environment.bridge(seen, np.flatnonzero(seen.there), bases, self.bench, rules.bridging_processes)
        self.outcome.bridged += bridged.processes
        effect = self.rows.logs[:, -1] - (bridged.logs - believed)
        far = sign * effect > np.maximum(self.margins, 2.5 * self.rows.noise)
        moved_rows = np.flatnonzero(far & np.isfinite(effect))
        if not len(moved_rows):
            return
        self.of_build = {int(row) for row in moved_rows}
        self.state.build = PendingBuild(
            night=seen.tonight,
            kind="regression" if sign > 0 else "improvement",
            effects={self.names[row]: float(effect[row]) for row in moved_rows},
        )

    def _conclude_build(self) -> None:
        """The night after: most of what the build moved is still there, or it was nothing."""
        pending, seen, rules = self.state.build, self.seen, self.rules
        if pending is None:
            return
        rows = [self.row_of[name] for name in pending.effects if name in self.row_of]
        rows = [row for row in rows if self._is_there(row)]
        nights = self._nights_since(pending.night)
        if len(rows) <= rules.share_persistent * len(pending.effects) and nights <= WAITING_NIGHTS:
            return
        self.state.build = None
        sign = 1 if pending.kind == "regression" else -1
        level, _ = level_before(self.rows, min(nights + 1, len(seen.nights) - 1))
        still = [
            row
            for row in rows
            if sign * (self.rows.logs[row, -1] - level[row]) > max(self.margins[row], self.rows.noise[row])
        ]
        if not rows or len(still) <= rules.share_persistent * len(rows):
            return
        onset = Onset(low=pending.night, high=pending.night)
        for row in rows:
            one = self.state.of(seen.series[row])
            if one.pending is not None:
                continue
            one.segment, one.weight = pending.night, rules.prior_of_a_step
            known = float(level[row])
            one.prior = known + pending.effects[self.names[row]] if math.isfinite(known) else None
            one.carried, one.resting, one.futile = None, 0, 0
        self._file(
            Filed(
                id=self._new_id(),
                kind=pending.kind,
                night=seen.tonight,
                onset=onset,
                series=tuple(self.names[row] for row in rows),
                moved={self.names[row]: math.expm1(pending.effects[self.names[row]]) for row in rows},
                of_a_build=True,
            )
        )
        self.rows = self._rows()

    # --- candidates -----------------------------------------------------------------------------------------------

    def _waiting(self) -> None:
        """What was confirmed on an earlier night is asked again, against the build that was good then."""
        seen, state = self.seen, self.state
        waiting = []
        for name, one in state.series.items():
            if one.pending is None:
                continue
            if self._nights_since(one.pending.confirmed) > WAITING_NIGHTS:
                one.pending = None
                continue
            row = self.row_of.get(name)
            if row is None or not self._is_there(row):
                continue
            base = self._good_night(row, sum(night <= one.pending.base for night in seen.nights) - 1)
            if base is None:
                one.pending = None
            else:
                waiting.append((row, one.pending.model_copy(update={"base": seen.nights[base]})))
        self._persist(waiting, 0)

    def _good_night(self, row: int, latest: int) -> int | None:
        """The newest night up to one whose build can still be measured, back to the first of the segment, whose build
        is kept in the store while the segment lives."""
        earliest = min(latest, max(int(self.segments[row]), latest - HISTORY_FOR_ONSET))
        nights = [*range(latest, max(0, earliest) - 1, -1)]
        one = self.state.series.get(self.names[row])
        if one is not None and one.segment in self.seen.nights and self.segments[row] < earliest:
            nights.append(int(self.segments[row]))
        return next((night for night in nights if self.bench.has(self.seen.builds[night])), None)

    def _is_there(self, row: int) -> bool:
        return bool(self.seen.there[row])

    def _persist(self, waiting: Sequence[tuple[int, Pending]], runner: int) -> None:
        if not waiting:
            return
        seen, state = self.seen, self.state
        trials = [
            Trial(
                seen.series[row],
                one.kind,
                seen.builds[seen.position(one.base)],
                seen.builds[-1],
                one.pair_sd,
                candidates=1,
            )
            for row, one in waiting
        ]
        found, spent = ask_again(trials, self.bench, self.rules, runner)
        self._spend(spent)
        self.outcome.again += found
        there = []
        for (row, pending), again in zip(waiting, found, strict=True):
            one = state.of(seen.series[row])
            if not again.answered:
                continue
            one.pending = None
            if not again.persistent:
                self._rest(one, 0.0)
                continue
            there.append((row, pending, again))
            one.segment = pending.confirmed
            level = self._level_at(row, pending)
            one.prior = level + again.effect if math.isfinite(level) else None
            one.weight = self.rules.prior_of_a_step
            one.carried, one.resting, one.futile = None, 0, 0
            if state.build is not None and self.names[row] in state.build.effects:
                state.build.effects[self.names[row]] = 0.0  # beyond this level, which tonight's build is in
        if there:
            self._file_changes(self._dated_with_a_build(there))
            self.rows = self._rows()

    def _dated_with_a_build(self, there: Sequence[tuple[int, Pending, Again]]) -> Sequence[tuple[int, Pending, Again]]:
        """A build that lately moved most of the class is asked first about what else is found of its kind: what was
        dated beside it belongs to it if pairs of that build and the one before say so."""
        seen = self.seen
        builds = [
            one
            for one in self.state.filed
            if one.of_a_build
            and one.onset.low in seen.nights[1:]
            and self._nights_since(one.night) <= STRAGGLERS_NIGHTS
        ]
        found = list(there)
        for filed in builds:
            at = seen.position(filed.onset.low)
            pair = seen.builds[at - 1], seen.builds[at]
            if pair[0] == pair[1] or not all(map(self.bench.has, pair)):
                continue
            asked = [
                index
                for index, (_, pending, _) in enumerate(found)
                if pending.kind == filed.kind
                and pending.base < filed.onset.low  # a build that has it in it cannot be what it was measured from
                and not pending.onset.overlaps(filed.onset)
            ]
            trials = [
                Trial(
                    seen.series[found[index][0]],
                    filed.kind,
                    *pair,
                    found[index][1].pair_sd,
                    candidates=1,
                )
                for index in asked
            ]
            moved_by_it, spent = are_there(trials, self.bench, self.rules)
            self._spend(spent)
            for index, was_it in zip(asked, moved_by_it, strict=True):
                if was_it:
                    row, pending, again = found[index]
                    found[index] = (row, pending.model_copy(update={"onset": filed.onset}), again)
        return found

    def _level_at(self, row: int, pending: Pending) -> float:
        """The level that a change was measured from."""
        window = max(1, sum(night >= pending.onset.low for night in self.seen.nights))
        level, _ = level_before(self.rows, min(window, self.rows.logs.shape[1] - 1))
        return float(level[row])

    def _spend(self, pairs: int) -> None:
        self.outcome.pairs += pairs
        self.state.bucket -= pairs

    def _rest(self, one: SeriesState, score: float) -> None:
        rests = self.rules.rests
        one.resting, one.score = rests[min(one.futile, len(rests) - 1)], score
        one.futile += 1
        one.carried = None

    def _candidates(self) -> None:
        seen, state, rules = self.seen, self.state, self.rules
        scores = moved(self.rows)
        passed, admitted = self._admitted(scores)
        state.accounts.candidates += len(admitted)
        trials, onsets = [], []
        for row in admitted:
            named = self.named.get(self.names[row])
            if named is not None and (self.is_young or not passed[row]):
                onset, base, effect = *self._dated_as_named(named), named.effect
            else:
                onset, base, effect = *self._dated(row, scores), float(scores.effect[row])
            if base is None or seen.builds[base] == seen.builds[-1]:
                continue
            base = self._good_night(row, base)
            if base is None:
                self.outcome.without_base.append(self.names[row])
            if base is None or seen.builds[base] == seen.builds[-1]:
                continue
            kind: ChangeKind = "regression" if effect > 0 else "improvement"
            carried = state.of(seen.series[row]).carried
            keeps = carried is not None and carried.kind == kind
            trials.append(
                Trial(
                    seen.series[row],
                    kind,
                    seen.builds[base],
                    seen.builds[-1],
                    float(self.rows.pair_sd[row]),
                    candidates=carried.candidates if keeps else len(admitted),
                    carried=carried.log_ratios if keeps else (),
                )
            )
            onsets.append((row, onset, base))
            self.asked[seen.series[row]] = (onset, seen.nights[base])
        tried, spent = try_all(trials, self.bench, rules, state.bucket)
        self._spend(spent)
        self.outcome.tried += tried
        by_key = {one.trial.key: one for one in tried}
        confirmed = []
        for row, onset, base in onsets:
            one, result = state.of(seen.series[row]), by_key[seen.series[row]]
            verdict = result.decision.verdict
            if verdict == "confirmed":
                one.pending = Pending(
                    kind=result.trial.kind,
                    base=seen.nights[base],
                    confirmed=seen.tonight,
                    onset=onset,
                    pair_sd=result.trial.pair_sd,
                )
                one.carried = None
                confirmed.append((row, one.pending))
            elif verdict == "futile":
                self._rest(one, float(scores.score[row]))
            elif result.log_ratios:
                self._carry(one, result)
            elif result.begun and spent:
                self._rest(one, float(scores.score[row]))  # pairs could be measured tonight, but not of this
        state.accounts.confirmed += len(confirmed)
        if self.bench.runners > 1:
            # What a build may have brought with most others waits to be told with them.
            build = state.build
            self._persist(
                [
                    (row, one)
                    for row, one in confirmed
                    if build is None or build.kind != one.kind or not one.onset.low <= build.night <= one.onset.high
                ],
                1,
            )

    def _dated_as_named(self, named: Named) -> tuple[Onset, int]:
        """Anything after the newest night of the baseline may have brought it."""
        base = self.seen.position(named.base)
        return Onset(low=self.seen.nights[base + 1], high=self.seen.tonight), base

    def _admitted(self, scores: Moved) -> tuple[BoolArray, list[int]]:
        """(which series are far enough by themselves, the series to be measured again, the best first)."""
        rules, state = self.rules, self.state
        for one in state.series.values():
            one.resting = max(0, one.resting - 1)
            if one.carried is not None and self._nights_since(one.carried.since) > rules.carried_nights:
                one.carried = None
        size = np.abs(scores.effect)
        hope = (size - self.margins) / self.rows.pair_sd
        passed = (
            (scores.score > rules.gate)
            & (size > rules.least_share_of_margin * self.margins)
            & (hope > rules.least_hope)
            & self.seen.there
        )
        if self.is_young:
            passed[:] = False
        self.outcome.ranks = scores.score * np.clip(hope / 1.2, 0.2, 1.0)
        rank = np.where(passed, self.outcome.ranks, -np.inf)
        settled = len(self.seen.nights) - 1 - self.segments >= rules.nights_of_the_limits
        called = np.array(
            [
                name in self.named and self._is_there(row) and (self.segments[row] == 0 or bool(settled[row]))
                for row, name in enumerate(self.names)
            ]
        )
        # What people would call a regression is looked at first: they see it anyway.
        rank = np.where(called, _FIRST + np.nan_to_num(rank, neginf=0.0), rank)
        found = []
        for row in map(int, np.argsort(-rank, kind="stable")):
            if not (passed[row] or called[row]) or row in self.of_build:
                continue
            one = state.series.get(self.names[row])
            if one is not None and (
                one.pending is not None
                or (one.resting > 0 and scores.score[row] < one.score + rules.rest_ended_by)
                or (state.build is not None and self.names[row] in state.build.effects)
            ):
                continue
            found.append(row)
        return passed, found[: rules.most_candidates]

    def _dated(self, row: int, scores: Moved) -> tuple[Onset, int | None]:
        """The nights that the change may have come in, and the night whose build is the last good one."""
        seen, rows = self.seen, self.rows
        last = rows.logs.shape[1] - 1
        first = max(int(rows.segment[row]), last - HISTORY_FOR_ONSET)
        found = date_onset(
            rows.logs[row],
            float(scores.level[row]),
            float(scores.effect[row]),
            float(rows.noise[row]),
            first,
            int(rows.began[row]) if rows.began[row] > rows.segment[row] else 0,
        )
        low, high = int(self.nights[row, found.low]), int(self.nights[row, found.high])
        low = max(low, int(self.segments[row]) + 1)
        base = int(self.nights[row, found.low - 1]) if found.low > 0 else low - 1
        base = max(base, int(self.segments[row]))
        low = max(low, base + 1)  # a build that no night measured may have brought it too
        if base >= len(seen.nights) - 1:  # the segment begins tonight
            return Onset(low=seen.tonight, high=seen.tonight), None
        return Onset(low=seen.nights[low], high=seen.nights[max(high, low)]), base

    def _carry(self, one: SeriesState, result: Tried) -> None:
        before = one.carried if result.trial.carried else None
        one.carried = Carried(
            since=before.since if before else self.seen.tonight,
            candidates=result.trial.candidates,
            kind=result.trial.kind,
            log_ratios=(*result.trial.carried, *result.log_ratios),
        )

    # --- filing ---------------------------------------------------------------------------------------------------

    def _file_changes(self, there: Sequence[tuple[int, Pending, Again]]) -> None:
        """Changes of one sign whose onsets have a night in common are one alert."""
        groups: list[list[tuple[int, Pending, Again]]] = []
        for one in sorted(there, key=lambda one: (one[1].onset.high - one[1].onset.low, one[0])):
            home = next(
                (
                    group
                    for group in groups
                    if group[0][1].kind == one[1].kind
                    and common([*(member[1].onset for member in group), one[1].onset]) is not None
                ),
                None,
            )
            if home is None:
                groups.append([one])
            else:
                home.append(one)
        for group in groups:
            self._file_group(group)

    def _file_group(self, group: Sequence[tuple[int, Pending, Again]]) -> None:
        seen = self.seen
        shown = []
        for row, pending, again in group:
            key = seen.series[row]
            interval = Interval(
                test=key.test,
                channel=key.channel,
                base=pending.base,
                head=seen.tonight,
                effect=math.expm1(again.effect),
                low=math.expm1(again.low),
                high=math.expm1(again.high),
            )
            shown.append(interval)
            self.outcome.intervals.append((interval, True))
        onset = common(pending.onset for _, pending, _ in group)
        assert onset is not None
        kind = group[0][1].kind
        home = self._home(kind, onset)
        if home is not None:
            onset = home.onset if home.of_a_build else onset.within(home.onset)
        self._file(
            Filed(
                id=home.id if home else self._new_id(),
                kind=kind,
                night=seen.tonight,
                onset=onset,
                series=tuple(self.names[row] for row, _, _ in group),
                intervals=tuple(shown),
                of_a_build=home is not None and home.of_a_build,
            )
        )

    def _home(self, kind: ChangeKind, onset: Onset) -> Filed | None:
        """The alert of lately that a change belongs to."""
        for one in reversed(self.state.filed):
            if one.of_a_build and one.kind == kind and one.onset.overlaps(onset):
                return one
        return None

    def _file(self, filed: Filed) -> None:
        self.state.filed.append(filed)
        self.outcome.filed.append(filed)
        self.state.accounts.filed += 1

    def _new_id(self) -> str:
        number = self.state.next_id
        self.state.next_id += 1
        return f"{self.seen.tonight:%Y%m%d}-{number}"

    # --- against itself -------------------------------------------------------------------------------------------

    def _against_itself(self) -> None:
        """Tonight's build against itself, one test: how often is nothing taken for something?"""
        seen, rules, accounts = self.seen, self.rules, self.state.accounts
        there = [row for row in range(len(seen.series)) if self._is_there(row)]
        if not there:
            return
        row = random.Random(f"against itself {seen.tonight.isoformat()}").choice(there)
        trial = Trial(
            seen.series[row], "regression", seen.builds[-1], seen.builds[-1], float(self.rows.pair_sd[row]), 1
        )
        ((again, spent),) = intervals([trial], self.bench, replace(rules, interval_pairs=rules.aa_pairs))
        self._spend(spent)
        if not again.persistent:
            return
        accounts.aa_tries += 1
        accounts.aa_covered += again.low <= 0 <= again.high
        if math.isfinite(trial.pair_sd):
            either_way = (replace(trial, kind=kind, candidates=2) for kind in ("regression", "improvement"))
            accounts.aa_confirmed += any(
                one.judged(again.log_ratios, rules).verdict == "confirmed" for one in either_way
            )
        effects = accounts.aa_effects.setdefault(trial.key.channel, [])
        effects.append(again.effect)
        del effects[:-KEPT_EFFECTS]
        widths = accounts.aa_half_widths.setdefault(trial.key.channel, [])
        widths.append((again.high - again.low) / 2)
        del widths[:-KEPT_EFFECTS]
        self.outcome.intervals.append(
            (
                Interval(
                    test=trial.key.test,
                    channel=trial.key.channel,
                    base=seen.tonight,
                    head=seen.tonight,
                    effect=math.expm1(again.effect),
                    low=math.expm1(again.low),
                    high=math.expm1(again.high),
                ),
                False,
            )
        )
