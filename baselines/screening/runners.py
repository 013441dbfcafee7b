"""Runners of one class that take turns: each is a little faster or slower than the others, for good."""

from collections.abc import Sequence

import numpy as np

from baselines.screening.noise import FloatArray

FEWEST_NEIGHBOURS = 5  # nights of one runner beside a night of the other, before an offset is believed


def on_one_runner(logs: FloatArray, runners: Sequence[str]) -> FloatArray:
    """The nights as the newest night's runner would have had them, shape (nights,) in and out, oldest first.

    A runner's offset is the median difference between neighbouring nights of the two: a step of the build lies
    between few of them, and so does not count as a runner's. A runner with too few neighbours, and a night whose runner
    is not known (""), is taken as it is: machines that are new every night have no offset that could be known.
    """
    here = runners[-1] if len(runners) else ""
    names = np.asarray(runners, dtype=object)
    aligned = np.array(logs, dtype=np.float64)
    for other in sorted(set(runners) - {here, ""}):
        pair = np.flatnonzero((names == here) | (names == other))
        first, second = pair[:-1], pair[1:]
        turns = names[first] != names[second]
        if turns.sum() < FEWEST_NEIGHBOURS:
            continue
        differences = logs[second[turns]] - logs[first[turns]]
        signs = np.where(names[second[turns]] == other, 1.0, -1.0)
        aligned[names == other] -= np.median(signs * differences)
    return aligned
