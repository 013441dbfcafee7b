"""Retention: the records of old runs are removed, their nights stay in the history. Runs that are pinned, or that a
later night may measure again, stay whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from baselines.history import keep_without_runs
from baselines.needed_nights import NightsOf, looked_back_to, no_others
from baselines.pins import read_pins
from baselines.runs import forget_agreement, list_shards, parse_run_prefix
from baselines.store import Store

KEEP_DAYS = 400  # somewhat more than the 13 months that a detection looks back
LEAST_DAYS = 31  # a shard may come late, and the last good build of an alert is looked at again


@dataclass(frozen=True)
class Removed:
    """What a removal came to."""

    runs: tuple[str, ...]
    left: tuple[str, ...]  # why, one line for each run that was to be removed and stays


def outdated_runs(
    store: Store, suite: str, machine_class: str, before: datetime, others: NightsOf = no_others
) -> list[str]:
    """The runs that began on a day before that of `before` and that nothing looks back to, oldest first."""
    day = before.astimezone(UTC).date().isoformat()
    needed = looked_back_to(store, suite, machine_class, others)
    runs = list_shards(store, suite, machine_class)
    return [prefix for prefix in runs if prefix.rpartition("/")[2][:10] < day and prefix not in needed]


def remove_runs(store: Store, prefixes: Sequence[str]) -> Removed:
    """Remove the records of runs of one suite and class. Killed at any moment, the next call goes on.

    The history has the night, and knows that it holds the only copy, before the first shard goes.
    """
    removed: list[str] = []
    left: list[str] = []
    for month in sorted({parse_run_prefix(prefix) for prefix in prefixes}):
        wanted = [prefix for prefix in prefixes if parse_run_prefix(prefix) == month]
        kept, problems = keep_without_runs(store, *month, wanted)
        left += problems
        shards = list_shards(store, *month)
        for prefix in kept:
            if any(pin.run == prefix for pin in read_pins(store, *month[:2]).values()):
                left.append(f"{prefix}: was pinned meanwhile")
                continue
            for key in shards.get(prefix, ()):
                store.delete(key)
            forget_agreement(store, prefix)
            removed.append(prefix)
    return Removed(tuple(removed), tuple(left))
