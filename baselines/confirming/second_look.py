"""What was confirmed, asked again on another night or runner: filed if new pairs show it too."""

import math
from collections.abc import Sequence

from baselines.confirming.class_wide_build import dated_with_a_build
from baselines.confirming.filing import file_changes
from baselines.confirming.levels import level_before
from baselines.confirming.state import Pending
from baselines.confirming.tonight import WAITING_NIGHTS, Tonight
from baselines.confirming.trials import Trial, ask_again


def ask_the_waiting(tonight: Tonight) -> None:
    """What was confirmed on an earlier night is asked again, against the build that was good then."""
    seen, state = tonight.seen, tonight.state
    waiting = []
    for name, one in state.series.items():
        if one.pending is None:
            continue
        if tonight.nights_since(one.pending.confirmed) > WAITING_NIGHTS:
            one.pending = None
            continue
        row = tonight.row_of.get(name)
        if row is None or not tonight.is_there(row):
            continue
        base = tonight.good_night(row, sum(night <= one.pending.base for night in seen.nights) - 1)
        if base is None:
            one.pending = None
        else:
            waiting.append((row, one.pending.model_copy(update={"base": seen.nights[base]})))
    ask_for_persistence(tonight, waiting, 0)


def ask_for_persistence(tonight: Tonight, waiting: Sequence[tuple[int, Pending]], runner: int) -> None:
    seen, state = tonight.seen, tonight.state
    if runner:
        waiting = [one for one in waiting if _can_be_had(tonight, one[1], runner)]
    if not waiting:
        return
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
    found, spent = ask_again(trials, tonight.bench, tonight.rules, runner)
    tonight.spend(spent)
    tonight.outcome.again += found
    there = []
    for (row, pending), again in zip(waiting, found, strict=True):
        one = state.of(seen.series[row])
        if not again.answered:
            continue
        one.pending = None
        if not again.persistent:
            # Held back by nothing but a futile try: twelve pairs miss a change now and then. Resting here was measured
            # on the fleet: it finds fewer changes within a fortnight, and saves no pairs.
            tonight.rest(one, 0.0)
            continue
        there.append((row, pending, again))
        one.segment = pending.confirmed
        level = _level_at(tonight, row, pending)
        one.prior = level + again.effect if math.isfinite(level) else None
        one.weight = tonight.rules.prior_of_a_step
        one.carried, one.resting, one.futile = None, 0, 0
        if state.build is not None and tonight.names[row] in state.build.effects:
            state.build.effects[tonight.names[row]] = 0.0  # beyond this level, which tonight's build is in
    if there:
        file_changes(tonight, dated_with_a_build(tonight, there, runner))
        tonight.look()


def _can_be_had(tonight: Tonight, one: Pending, runner: int) -> bool:
    """Whether another runner has the builds; the one of the night has measured them."""
    seen = tonight.seen
    return all(tonight.bench.has(build, runner) for build in (seen.builds[seen.position(one.base)], seen.builds[-1]))


def _level_at(tonight: Tonight, row: int, pending: Pending) -> float:
    """The level that a change was measured from."""
    window = max(1, sum(night >= pending.onset.low for night in tonight.seen.nights))
    level, _ = level_before(tonight.rows, min(window, tonight.rows.logs.shape[1] - 1))
    return float(level[row])
