"""Runs in a store: immutable objects under `runs/<suite>/<class>/<date>-<build>-<run>/<shard>.jsonl.gz`."""

import re
import zlib
from collections.abc import Sequence
from datetime import UTC

from baselines.errors import BaselineError
from baselines.store.interface import Store, check_part
from torchbenchmark.records import WHOLE, PlannedTest, Record, Run, RunHeader, decode_run, encode_run

RUNS = "runs"
ENDING = ".jsonl.gz"
_SHARD = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)")
_WHOLE_ONCE = "0-of-1"  # what the first versions called a whole run
_RUN_PREFIX = re.compile(rf"{RUNS}/([^/]+)/([^/]+)/([0-9]{{4}}-[0-9]{{2}})-[0-9]{{2}}-[^/]+")


def series_prefix(kind: str, suite: str, machine_class: str) -> str:
    """Where the objects of a kind (runs, history, pins) of one suite and class stand."""
    return f"{kind}/{check_part(suite, 'suite')}/{check_part(machine_class, 'class')}"


def run_prefix(header: RunHeader) -> str:
    """The key of a run without its shard. The date is that of the start in UTC."""
    date = header.started.astimezone(UTC).date().isoformat()
    night = f"{date}-{check_part(header.build.id, 'build id')}-{check_part(header.run, 'run id')}"
    return f"{series_prefix(RUNS, header.suite, header.machine_class)}/{night}"


def run_key(header: RunHeader) -> str:
    """The key of a run, or of one shard of it."""
    return f"{run_prefix(header)}/{header.shard.index}-of-{header.shard.count}{ENDING}"


def parse_run_prefix(prefix: str) -> tuple[str, str, str]:
    """Suite, class and month (YYYY-MM) of the key of a run."""
    match = _RUN_PREFIX.fullmatch(prefix)
    if match is None:
        raise BaselineError(f"{prefix!r} is not the key of a run; expected runs/<suite>/<class>/<date>-<build>-<run>")
    return match[1], match[2], match[3]


def store_run(store: Store, run: Run) -> str:
    """Store a run, or one shard of it, and return its key. Storing the same again is a success.

    All shards of a run carry the same start in their headers: its date is part of the key.
    """
    if run.header.selection:
        raise BaselineError(
            f"run {run.header.run} measured only {', '.join(run.header.selection)} of its suite, which is no night; "
            "run the suite without --test to store it"
        )
    key = run_key(run.header)
    store.create(key, encode_run(run))
    return key


def list_runs(store: Store, suite: str, machine_class: str, month: str = "") -> list[str]:
    """The prefixes of the runs of a suite and class by date (of one month, YYYY-MM, if given).

    Runs of one day come by build and run id: their time stands in the header, and in the history.
    """
    keys = store.list(f"{series_prefix(RUNS, suite, machine_class)}/{month}")
    return sorted({prefix for key in keys if _RUN_PREFIX.fullmatch(prefix := key.rpartition("/")[0])})


def list_series(store: Store) -> list[tuple[str, str]]:
    """Every suite and class of which there are runs."""
    prefixes = {key.rpartition("/")[0] for key in store.list(f"{RUNS}/")}
    return sorted({parse_run_prefix(prefix)[:2] for prefix in prefixes if _RUN_PREFIX.fullmatch(prefix)})


def load_run(store: Store, prefix: str) -> Run:
    """The run of all its shards that are stored, with the names of those that are not.

    Raises BaselineError if there is none at all, or one that is damaged, or of another run.
    """
    parse_run_prefix(prefix)
    keys = [key for key in store.list(f"{prefix}/") if key.endswith(ENDING)]
    if not keys:
        raise BaselineError(f"{store.location}: there is no run {prefix}")
    missing = _missing_shards(prefix, [key.rpartition("/")[2].removesuffix(ENDING) for key in keys])
    return _join(prefix, [_decode(store, key) for key in keys], missing)


def _decode(store: Store, key: str) -> Run:
    try:
        return decode_run(store.read(key), f"{store.location}/{key}")
    except zlib.error as error:
        raise BaselineError(f"{store.location}: {key}: a damaged gzip file ({error})") from error


def _missing_shards(prefix: str, names: Sequence[str]) -> tuple[str, ...]:
    """What `names` lack to make a whole run, as "i/n"."""
    shards = [_SHARD.fullmatch("1-of-1" if name == _WHOLE_ONCE else name) for name in names]
    for name, match in zip(names, shards, strict=True):
        if match is None or int(match[1]) > int(match[2]):
            raise BaselineError(f"{prefix}: {name}{ENDING} is not a shard; expected the form i-of-n with i from 1")
    counts = {int(match[2]) for match in shards if match}
    if len(counts) > 1:
        raise BaselineError(f"{prefix}: shards of different divisions: {', '.join(names)}")
    have, count = {int(match[1]) for match in shards if match}, counts.pop()
    return tuple(f"{index}/{count}" for index in range(1, count + 1) if index not in have)


def _join(prefix: str, shards: Sequence[Run], missing: tuple[str, ...]) -> Run:
    """One run of all shards, with the header of the first and the plans of all."""
    header = shards[0].header
    every = _planned(header)
    plan: dict[str, PlannedTest] = {}
    records: dict[str, Record] = {}
    for shard in shards:
        _check_of_one_run(prefix, header, shard.header)
        if _planned(shard.header) != every:
            raise BaselineError(
                f"{prefix}: its shards planned other tests, or other workloads of them; measure all with one plan and "
                "one version of the suite"
            )
        plan.update({planned.test: planned for planned in shard.header.plan})
        for record in shard.records:
            if records.setdefault(record.test, record) is not record:
                raise BaselineError(f"{prefix}: {record.test} has a record in two shards")
    elsewhere = tuple(planned for test, planned in every.items() if test not in plan)
    joined = header.model_copy(update={"plan": tuple(plan.values()), "elsewhere": elsewhere, "shard": WHOLE})
    return Run(joined, tuple(records.values()), missing)


def _planned(header: RunHeader) -> dict[str, PlannedTest]:
    """What the run is to measure in all its shards."""
    return {planned.test: planned for planned in (*header.plan, *header.elsewhere)}


def _check_of_one_run(prefix: str, ours: RunHeader, theirs: RunHeader) -> None:
    if run_prefix(theirs) != prefix:
        raise BaselineError(f"{prefix}: holds a shard of another run, {run_prefix(theirs)}")
    if ours.environment.fingerprint != theirs.environment.fingerprint:
        facts, others = ours.environment.facts, theirs.environment.facts
        differing = sorted(name for name in facts.keys() | others.keys() if facts.get(name) != others.get(name))
        raise BaselineError(
            f"{prefix}: its shards were measured in different environments ({', '.join(differing)}); "
            "use runners that are alike"
        )
