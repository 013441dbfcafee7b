"""The candidates of a night: which series are far enough to be measured again, against which build, and what came."""

from collections.abc import Sequence

import numpy as np

from baselines.confirming.levels import Moved, moved
from baselines.confirming.onset import date_onset
from baselines.confirming.rules import Rules, Urgency
from baselines.confirming.second_look import ask_for_persistence
from baselines.confirming.state import Carried, ChangeKind, Onset, Pending, SeriesState
from baselines.confirming.tonight import HISTORY_FOR_ONSET, Named, Tonight
from baselines.confirming.trials import Trial, Tried, try_all
from baselines.screening.shift_test import BoolArray

_FIRST = 1e6  # above any score


Confirmed = tuple[int, Pending]  # a series by its row, and what waits to be asked again of it


def try_candidates(tonight: Tonight) -> list[Confirmed]:
    """What was confirmed and waits for another night, if no other runner is asked."""
    seen, state, rules = tonight.seen, tonight.state, tonight.rules
    scores = moved(tonight.rows)
    passed, admitted = _admitted(tonight, scores)
    state.accounts.candidates += len(admitted)
    trials, onsets = [], []
    for row in admitted:
        named = tonight.named.get(tonight.names[row])
        if named is not None and (tonight.is_young or not passed[row]):
            onset, base, effect = *_dated_as_named(tonight, named), named.effect
        else:
            onset, base, effect = *_dated(tonight, row, scores), float(scores.effect[row])
        if base is None or seen.builds[base] == seen.builds[-1]:
            continue
        base = tonight.good_night(row, base)
        if base is None:
            tonight.outcome.without_base.append(tonight.names[row])
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
                float(tonight.rows.pair_sd[row]),
                candidates=carried.candidates if keeps else len(admitted),
                carried=carried.log_ratios if keeps else (),
            )
        )
        onsets.append((row, onset, base))
        tonight.asked[seen.series[row]] = (onset, seen.nights[base])
    tried, spent = try_all(trials, tonight.bench, rules, state.bucket)
    tonight.spend(spent)
    tonight.outcome.tried += tried
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
            tonight.rest(one, float(scores.score[row]))
        elif result.log_ratios:
            _carry(tonight, one, result)
        elif result.begun and spent:
            tonight.rest(one, float(scores.score[row]))  # pairs could be measured tonight, but not of this
    state.accounts.confirmed += len(confirmed)
    urgent = {row for row, _ in confirmed if _urgency(by_key[seen.series[row]], rules) in rules.at_once}
    ask_for_persistence(tonight, [one for one in _alone(tonight, confirmed) if one[0] in urgent], 0)
    return [(row, one) for row, one in confirmed if row not in urgent]


def ask_another_runner(tonight: Tonight, confirmed: Sequence[Confirmed]) -> None:
    """What was confirmed tonight is asked again on another runner, if there is one that can have its builds."""
    if tonight.bench.runners > 1:
        ask_for_persistence(tonight, _alone(tonight, confirmed), 1)


def _alone(tonight: Tonight, confirmed: Sequence[Confirmed]) -> list[Confirmed]:
    """What a build may have brought with most others waits to be told with them."""
    build = tonight.state.build
    return [
        (row, one)
        for row, one in confirmed
        if build is None or build.kind != one.kind or not one.onset.low <= build.night <= one.onset.high
    ]


def _urgency(result: Tried, rules: Rules) -> Urgency:
    severe = result.trial.kind == "regression" and result.effect > rules.severe_above
    return "severe" if severe else result.trial.kind


def _dated_as_named(tonight: Tonight, named: Named) -> tuple[Onset, int]:
    """Anything after the newest night of the baseline may have brought it."""
    base = tonight.seen.position(named.base)
    return Onset(low=tonight.seen.nights[base + 1], high=tonight.seen.tonight), base


def _admitted(tonight: Tonight, scores: Moved) -> tuple[BoolArray, list[int]]:
    """(which series are far enough by themselves, the series to be measured again, the best first)."""
    rules, state = tonight.rules, tonight.state
    for one in state.series.values():
        one.resting = max(0, one.resting - 1)
        if one.carried is not None and tonight.nights_since(one.carried.since) > rules.carried_nights:
            one.carried = None
    size = np.abs(scores.effect)
    hope = (size - tonight.margins) / tonight.rows.pair_sd
    passed = (
        (scores.score > rules.gate)
        & (size > rules.least_share_of_margin * tonight.margins)
        & (hope > rules.least_hope)
        & tonight.seen.there
    )
    if tonight.is_young:
        passed[:] = False
    tonight.outcome.ranks = scores.score * np.clip(hope / 1.2, 0.2, 1.0)
    rank = np.where(passed, tonight.outcome.ranks, -np.inf)
    settled = len(tonight.seen.nights) - 1 - tonight.segments >= rules.nights_of_the_limits
    called = np.array(
        [
            name in tonight.named
            and tonight.is_there(row)
            and (tonight.segments[row] == 0 or bool(settled[row]) or _may_be_relapse(tonight, row))
            for row, name in enumerate(tonight.names)
        ]
    )
    # What people would call a regression is looked at first: they see it anyway.
    rank = np.where(called, _FIRST + np.nan_to_num(rank, neginf=0.0), rank)
    found = []
    for row in map(int, np.argsort(-rank, kind="stable")):
        if not (passed[row] or called[row]) or row in tonight.of_build:
            continue
        one = state.series.get(tonight.names[row])
        if one is not None and (
            one.pending is not None or (state.build is not None and tonight.names[row] in state.build.effects)
        ):
            continue
        if one is not None and one.resting > 0 and scores.score[row] < one.score + rules.rest_ended_by:
            tonight.outcome.resting.append(tonight.names[row])
            continue
        found.append(row)
    tonight.outcome.not_tried += [tonight.names[row] for row in found[rules.most_candidates :]]
    return passed, found[: rules.most_candidates]


def _may_be_relapse(tonight: Tonight, row: int) -> bool:
    """Whether the segment is of a time before its alert was closed as recovered: the limits' nights are good ones."""
    recovered = tonight.named[tonight.names[row]].recovered
    return recovered is not None and tonight.seen.nights[tonight.segments[row]] < recovered


def _dated(tonight: Tonight, row: int, scores: Moved) -> tuple[Onset, int | None]:
    """The nights that the change may have come in, and the night whose build is the last good one."""
    seen, rows = tonight.seen, tonight.rows
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
    low, high = int(tonight.nights[row, found.low]), int(tonight.nights[row, found.high])
    low = max(low, int(tonight.segments[row]) + 1)
    base = int(tonight.nights[row, found.low - 1]) if found.low > 0 else low - 1
    base = max(base, int(tonight.segments[row]))
    low = max(low, base + 1)  # a build that no night measured may have brought it too
    if base >= len(seen.nights) - 1:  # the segment begins tonight
        return Onset(low=seen.tonight, high=seen.tonight), None
    return Onset(low=seen.nights[low], high=seen.nights[max(high, low)]), base


def _carry(tonight: Tonight, one: SeriesState, result: Tried) -> None:
    before = one.carried if result.trial.carried else None
    one.carried = Carried(
        since=before.since if before else tonight.seen.tonight,
        candidates=result.trial.candidates,
        kind=result.trial.kind,
        log_ratios=(*result.trial.carried, *result.log_ratios),
    )
