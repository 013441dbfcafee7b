"""How far repeated runs of one build lie apart, test by test: whether a reference can be held against 7 %.

Score V1 verified that no test of its suite varied by more than the 7 % from which on it raises a signal. Here the
number of a test is the largest deviation of one process from another: the highest mean of a process over the lowest,
less 1, of all processes of all runs.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from score.errors import ScoreError
from torchbenchmark.records import Run, Status

LIMIT = 0.07  # published: a signal of Score V1
FEWEST_PROCESSES = 3


@dataclass(frozen=True)
class Repeated:
    """One channel of one test over all processes that ended ok."""

    test: str
    channel: str
    means: tuple[float, ...]  # of each process, in the channel's unit

    @property
    def deviation(self) -> float:
        """As a share; 0 of a channel that is 0 throughout, infinite if it is in one process only."""
        low, high = min(self.means), max(self.means)
        return 0.0 if high == low else high / low - 1 if low > 0 else math.inf


def repeated(paths: Sequence[Path], runs: Sequence[Run], channels: Iterable[str]) -> list[Repeated]:
    """Of every test and channel that three processes or more have, the least repeatable first within a channel.

    Raises ScoreError for runs of different builds, classes or workloads, for what lies between these is no deviation,
    and for one run twice, which agrees with itself.
    """
    first = runs[0].header
    there: dict[tuple[str, str], Path] = {}
    hashes: dict[str, tuple[str, Path]] = {}
    for path, run in zip(paths, runs, strict=True):
        for what, one, other in (
            ("build", first.build.id, run.header.build.id),
            ("class", first.machine_class, run.header.machine_class),
        ):
            if one != other:
                raise ScoreError(f"{path}: is of {what} {other}, and {paths[0]} of {one}; give runs of one")
        named = (run.header.run, str(run.header.shard))
        if named in there:
            raise ScoreError(f"{path}: holds the same run as {there[named]}, {run.header.run}; give each run once")
        there[named] = path
        for record in run.records:
            known, where = hashes.setdefault(record.test, (record.workload.hash, path))
            if known != record.workload.hash:
                raise ScoreError(f"{path}: {record.test} is other work there than in {where}; give runs of one harness")
    found = []
    for channel in channels:
        means: dict[str, list[float]] = {}
        for run in runs:
            for record in run.records:
                if record.status is Status.OK:
                    means.setdefault(record.test, []).extend(one.mean for one in record.process_channels(channel))
        enough = [Repeated(test, channel, tuple(all_)) for test, all_ in means.items() if len(all_) >= FEWEST_PROCESSES]
        found += sorted(enough, key=lambda one: (-one.deviation, one.test))
    return found
