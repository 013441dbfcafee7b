"""A night whose environment is suspected: whether it is the machine or the build, and how the series go on."""

import math

import numpy as np

from baselines.confirming import environment
from baselines.confirming.class_wide_build import suspect_build
from baselines.confirming.eras import era_before, era_of_night
from baselines.confirming.filing import file_one, new_id
from baselines.confirming.levels import level_before
from baselines.confirming.state import Filed, Onset
from baselines.confirming.tonight import Tonight
from baselines.screening.noise import FloatArray, IntArray

JOINED_NIGHTS = 3  # after a note on the environment: another runner that follows is told there


def look_at_environment(tonight: Tonight) -> None:
    seen, state, rules = tonight.seen, tonight.state, tonight.rules
    why = environment.reasons(seen, tonight.rows, state, rules)
    known = state.era_of(seen.tonight, seen.environments[-1])
    if not why:
        return
    before = known or era_before(tonight)
    bases = environment.bridging_bases(seen, state, tonight.segments)
    bases = environment.measurable(bases, seen, tonight.segments, tonight.bench)
    few = environment.quieter_tests(seen, tonight.rows, rules.bridging_tests)
    bridged = environment.bridge(seen, few, bases, tonight.bench, rules.bridging_processes)
    tonight.outcome.bridged += bridged.processes
    believed = np.array([before.shifts.get(name, 0.0) if before else 0.0 for name in tonight.names])
    found, told = environment.is_environment(bridged, tonight.rows, bridged.logs - believed, rules)
    tonight.outcome.notes.append(f"{'; '.join(why)}; {told}")
    if found:
        _new_environment(tonight, bases, believed, f"{'; '.join(why)}; {told}")
        return
    if known is None:
        state.eras.append(era_of_night(tonight, dict(before.shifts) if before else {}))
        tonight.look()
    share, sign = environment.moved_alike(tonight.rows, seen.there)
    many = share > rules.share_moved_alike and environment.enough_alike(seen, tonight.rows, rules)
    if many and bridged.measured.size:
        suspect_build(tonight, bases, believed, sign)


def _new_environment(tonight: Tonight, bases: IntArray, believed: FloatArray, why: str) -> None:
    """Every series goes on with the shift that its last good build shows."""
    seen, state, rules = tonight.seen, tonight.state, tonight.rules
    every = range(len(seen.series))
    bridged = environment.bridge(seen, every, bases, tonight.bench, rules.bridging_processes)
    tonight.outcome.bridged += bridged.processes
    level, _ = level_before(tonight.rows, 1)
    shift = np.where(np.isfinite(bridged.logs) & np.isfinite(level), bridged.logs - level, np.nan)
    shifts = {
        name: float(new) if math.isfinite(new) else float(old)
        for name, new, old in zip(tonight.names, shift, believed, strict=True)
    }
    for row in range(len(tonight.names)):
        one = state.of(seen.series[row])
        if math.isfinite(shift[row]):
            one.prior, one.weight = float(level[row]), rules.prior_of_an_environment
        else:  # nothing bridges it: it begins anew
            one.prior, one.weight, one.segment = None, 0.0, seen.tonight
        one.carried = None
    state.eras.append(era_of_night(tonight, shifts))
    tonight.look()
    note = next(
        (
            one
            for one in reversed(state.filed)
            if one.kind == "environment" and tonight.nights_since(one.night) <= JOINED_NIGHTS
        ),
        None,
    )
    file_one(
        tonight,
        Filed(
            id=note.id if note else new_id(tonight),
            kind="environment",
            night=seen.tonight,
            onset=Onset(low=seen.tonight, high=seen.tonight),
            why=why,
        ),
    )
