"""Runs in a store: immutable objects under `runs/<suite>/<class>/<date>-<build>-<run>/<shard>.jsonl.gz`."""

import re
import zlib
from collections.abc import Sequence
from datetime import UTC

from baselines.errors import BaselineError
from baselines.store.interface import Store, check_part
from torchbenchmark.records import Run, RunHeader, decode_run, encode_run

RUNS = "runs"
ENDING = ".jsonl.gz"
WHOLE_RUN = "0-of-1"
_SHARD = re.compile(r"(0|[1-9][0-9]*)-of-([1-9][0-9]*)")
_RUN_PREFIX = re.compile(rf"{RUNS}/([^/]+)/([^/]+)/([0-9]{{4}}-[0-9]{{2}})-[0-9]{{2}}-[^/]+")


def series_prefix(kind: str, suite: str, machine_class: str) -> str:
    """Where the objects of a kind (runs, history, pins) of one suite and class stand."""
    return f"{kind}/{check_part(suite, 'suite')}/{check_part(machine_class, 'class')}"


def run_prefix(header: RunHeader) -> str:
    """The key of a run without its shard. The date is that of the start in UTC."""
    date = header.started.astimezone(UTC).date().isoformat()
    night = f"{date}-{check_part(header.build.id, 'build id')}-{check_part(header.run, 'run id')}"
    return f"{series_prefix(RUNS, header.suite, header.machine_class)}/{night}"


def parse_run_prefix(prefix: str) -> tuple[str, str, str]:
    """Suite, class and month (YYYY-MM) of the key of a run."""
    match = _RUN_PREFIX.fullmatch(prefix)
    if match is None:
        raise BaselineError(f"{prefix!r} is not the key of a run; expected runs/<suite>/<class>/<date>-<build>-<run>")
    return match[1], match[2], match[3]


def store_run(store: Store, run: Run, shard: str = WHOLE_RUN) -> str:
    """Store a run, or one shard `i-of-n` of it, and return its key. Storing the same again is a success.

    All shards of a run carry the same start in their headers: its date is part of the key.
    """
    if not _valid_shard(shard):
        raise BaselineError(f"shard {shard!r}: expected the form i-of-n with i from 0, such as {WHOLE_RUN}")
    if run.header.selection:
        raise BaselineError(
            f"run {run.header.run} measured only {', '.join(run.header.selection)} of its suite, which is no night; "
            "run the suite without --test to store it"
        )
    key = f"{run_prefix(run.header)}/{shard}{ENDING}"
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
    """The run of all its shards. Raises BaselineError if one is missing, damaged, or of another run."""
    parse_run_prefix(prefix)
    keys = [key for key in store.list(f"{prefix}/") if key.endswith(ENDING)]
    if not keys:
        raise BaselineError(f"{store.location}: there is no run {prefix}")
    _check_complete(prefix, [key.rpartition("/")[2].removesuffix(ENDING) for key in keys])
    return _join(prefix, [_decode(store, key) for key in keys])


def _decode(store: Store, key: str) -> Run:
    try:
        return decode_run(store.read(key), f"{store.location}/{key}")
    except zlib.error as error:
        raise BaselineError(f"{store.location}: {key}: a damaged gzip file ({error})") from error


def _valid_shard(shard: str) -> bool:
    match = _SHARD.fullmatch(shard)
    return match is not None and int(match[1]) < int(match[2])


def _check_complete(prefix: str, shards: Sequence[str]) -> None:
    for shard in shards:
        if not _valid_shard(shard):
            raise BaselineError(f"{prefix}: {shard}{ENDING} is not a shard; expected the form i-of-n")
    totals = {int(shard.rpartition("-")[2]) for shard in shards}
    if len(totals) > 1:
        raise BaselineError(f"{prefix}: shards of different divisions: {', '.join(shards)}")
    total = totals.pop()
    missing = [f"{index}-of-{total}" for index in range(total) if f"{index}-of-{total}" not in shards]
    if missing:
        raise BaselineError(
            f"{prefix}: shard {', '.join(missing)} is missing; store it, then the run counts as a night"
        )


def _join(prefix: str, shards: Sequence[Run]) -> Run:
    """One run of all shards, with the header of the first and the plans of all."""
    header = shards[0].header
    plan, records = {}, {}
    for shard in shards:
        for name, ours, theirs in (
            ("key", prefix, run_prefix(shard.header)),
            ("environment", header.environment.fingerprint, shard.header.environment.fingerprint),
        ):
            if ours != theirs:
                raise BaselineError(f"{prefix}: shards of one run with another {name}: {ours} and {theirs}")
        plan.update({planned.test: planned for planned in shard.header.plan})
        for record in shard.records:
            if records.setdefault(record.test, record) is not record:
                raise BaselineError(f"{prefix}: {record.test} has a record in two shards")
    return Run(header.model_copy(update={"plan": tuple(plan.values())}), tuple(records.values()))
