"""A build that moved most of a class: suspected by the bridging run, one alert the night after, and what is found of it
later is told with it."""

import math
from collections.abc import Sequence

import numpy as np

from baselines.confirming import environment
from baselines.confirming.filing import Found, file_one, new_id
from baselines.confirming.levels import level_before
from baselines.confirming.shares import share_of
from baselines.confirming.state import Filed, Onset, PendingBuild
from baselines.confirming.tonight import WAITING_NIGHTS, Tonight
from baselines.confirming.trials import Trial, are_there
from baselines.screening.noise import FloatArray, IntArray

STRAGGLERS_NIGHTS = 21  # after it: what is found then of its kind may belong to it


def suspect_build(tonight: Tonight, bases: IntArray, believed: FloatArray, sign: int) -> None:
    """The same build as bridged, of every series: which are off it tonight."""
    seen, rules = tonight.seen, tonight.rules
    bridged = environment.bridge(seen, np.flatnonzero(seen.there), bases, tonight.bench, rules.bridging_processes)
    tonight.outcome.bridged += bridged.processes
    effect = tonight.rows.logs[:, -1] - (bridged.logs - believed)
    far = sign * effect > np.maximum(tonight.margins, 2.5 * tonight.rows.noise)
    moved_rows = np.flatnonzero(far & np.isfinite(effect))
    if not len(moved_rows):
        return
    tonight.of_build = {int(row) for row in moved_rows}
    tonight.state.build = PendingBuild(
        night=seen.tonight,
        kind="regression" if sign > 0 else "improvement",
        effects={tonight.names[row]: float(effect[row]) for row in moved_rows},
    )


def conclude_build(tonight: Tonight) -> None:
    """The night after: most of what the build moved is still there, or it was nothing."""
    pending, seen, rules = tonight.state.build, tonight.seen, tonight.rules
    if pending is None:
        return
    rows = [tonight.row_of[name] for name in pending.effects if name in tonight.row_of]
    rows = [row for row in rows if tonight.is_there(row)]
    nights = tonight.nights_since(pending.night)
    if len(rows) <= rules.share_persistent * len(pending.effects) and nights <= WAITING_NIGHTS:
        return
    tonight.state.build = None
    sign = 1 if pending.kind == "regression" else -1
    level, _ = level_before(tonight.rows, min(nights + 1, len(seen.nights) - 1))
    still = [
        row
        for row in rows
        if sign * (tonight.rows.logs[row, -1] - level[row]) > max(tonight.margins[row], tonight.rows.noise[row])
    ]
    if not rows or len(still) <= rules.share_persistent * len(rows):
        return
    onset = Onset(low=pending.night, high=pending.night)
    for row in rows:
        one = tonight.state.of(seen.series[row])
        if one.pending is not None:
            continue
        one.segment, one.weight = pending.night, rules.prior_of_a_step
        known = float(level[row])
        one.prior = known + pending.effects[tonight.names[row]] if math.isfinite(known) else None
        one.carried, one.resting, one.futile = None, 0, 0
    file_one(
        tonight,
        Filed(
            id=new_id(tonight),
            kind=pending.kind,
            night=seen.tonight,
            onset=onset,
            series=tuple(tonight.names[row] for row in rows),
            moved={tonight.names[row]: share_of(pending.effects[tonight.names[row]]) for row in rows},
            of_a_build=True,
        ),
    )
    tonight.look()


def dated_with_a_build(tonight: Tonight, there: Sequence[Found], runner: int) -> Sequence[Found]:
    """A build that lately moved most of the class is asked first about what else is found of its kind: what was
    dated beside it belongs to it if pairs of that build and the one before say so."""
    seen = tonight.seen
    builds = [
        one
        for one in tonight.state.filed
        if one.of_a_build and one.onset.low in seen.nights[1:] and tonight.nights_since(one.night) <= STRAGGLERS_NIGHTS
    ]
    found = list(there)
    for filed in builds:
        at = seen.position(filed.onset.low)
        pair = seen.builds[at - 1], seen.builds[at]
        if pair[0] == pair[1] or not all(tonight.bench.has(build, runner) for build in pair):
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
        moved_by_it, spent = are_there(trials, tonight.bench, tonight.rules, runner)
        tonight.spend(spent)
        for index, was_it in zip(asked, moved_by_it, strict=True):
            if was_it:
                row, pending, again = found[index]
                found[index] = (row, pending.model_copy(update={"onset": filed.onset}), again)
    return found
