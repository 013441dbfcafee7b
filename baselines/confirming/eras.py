"""What is known of the environments of a class: those that it has met, and what a series differs by between them."""

import math
import statistics

import numpy as np

from baselines.confirming.levels import FEWEST_NIGHTS
from baselines.confirming.state import Era
from baselines.confirming.tonight import Tonight
from baselines.screening.noise import row_medians

NEWCOMERS_NIGHTS = 5  # of a new series on each of several runners, which tell what it differs by between them


def era_of_night(tonight: Tonight, shifts: dict[str, float], night: int = -1) -> Era:
    seen = tonight.seen
    return Era(
        environment=seen.environments[night], runner=seen.runners[night], since=seen.nights[night], shifts=shifts
    )


def meet_environments(tonight: Tonight, nights: int) -> None:
    """Those of the first nights are as they are: nothing was looked at before."""
    for night in range(nights):
        if tonight.state.era_of(tonight.seen.nights[night], tonight.seen.environments[night]) is None:
            tonight.state.eras.append(era_of_night(tonight, {}, night))


def align_environments(tonight: Tonight, nights: int) -> None:
    """Those that took turns in the first nights differ by their medians; none of them is a change. One of a night
    or two is not known yet."""
    nights_of: dict[int, list[int]] = {}
    for night in range(nights):
        era = tonight.state.era_of(tonight.seen.nights[night], tonight.seen.environments[night])
        if era is not None:
            nights_of.setdefault(tonight.state.eras.index(era), []).append(night)
    if len(nights_of) < 2:
        return
    nights_of = {index: several for index, several in nights_of.items() if len(several) >= FEWEST_NIGHTS}
    tonight.state.eras = [tonight.state.eras[index] for index in nights_of]
    nights_of = dict(enumerate(nights_of.values()))
    if not nights_of:
        return
    medians = {index: row_medians(tonight.seen.logs[:, nights]) for index, nights in nights_of.items()}
    reference = medians[min(medians)]
    for index, median in medians.items():
        shift = median - reference
        tonight.state.eras[index].shifts = {
            name: float(value) for name, value in zip(tonight.names, shift, strict=True) if math.isfinite(value)
        }


def align_newcomers(tonight: Tonight) -> bool:
    """A series that came after the runners were aligned has its own difference between them: that of its first
    nights on each, before much can have happened to it. Whether there was any."""
    found = False
    aligned = [era for era in tonight.state.eras if era.shifts]
    for row, name in enumerate(tonight.names):
        lacking = [era for era in aligned if name not in era.shifts]
        if len({era.runner for era in lacking}) < 2:
            continue
        first: dict[str, list[float]] = {}
        for night in np.flatnonzero(np.isfinite(tonight.seen.logs[row])):
            era = tonight.state.era_of(tonight.seen.nights[night], tonight.seen.environments[night])
            if any(era is one for one in lacking) and len(first.setdefault(era.runner, [])) < NEWCOMERS_NIGHTS:
                first[era.runner].append(float(tonight.seen.logs[row, night]))
        known = {runner: statistics.median(logs) for runner, logs in first.items() if len(logs) == NEWCOMERS_NIGHTS}
        if len(known) == len({era.runner for era in lacking}):
            reference = known[lacking[0].runner]
            for era in lacking:
                era.shifts[name] = known[era.runner] - reference
            found = True
    return found


def forget_environments(tonight: Tonight) -> None:
    """One that no night of the window ran in is met anew if it comes back: daily new names would pile up."""
    shown = set(tonight.seen.environments)
    tonight.state.eras = [era for era in tonight.state.eras if era.environment in shown]


def era_before(tonight: Tonight) -> Era | None:
    """The era that the last night on this runner was in, else the newest."""
    mine = [era for era in tonight.state.eras if era.runner == tonight.seen.runners[-1]]
    return (mine or tonight.state.eras or [None])[-1]
