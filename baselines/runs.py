"""Runs in a store: immutable objects under `runs/<suite>/<class>/<date>-<build>-<run>/<shard>.jsonl.gz`."""

import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict

from baselines.errors import BaselineError
from baselines.store.interface import Store, check_part, update
from torchbenchmark.records import WHOLE, PlannedTest, Record, Run, RunHeader, decode_run, encode_run

RUNS = "runs"
AGREEMENTS = "agreements"
CLOCK_AHEAD = timedelta(days=1)  # of the machine that measured, before ours
ABANDONED = timedelta(hours=1)  # after which the agreement of a writer that left no shard counts no more
ENDING = ".jsonl.gz"
_SHARD = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)")
_WHOLE_ONCE = "0-of-1"  # what the first versions called a whole run
# Of a header: what moves the numbers, so that shards which differ in it are no parts of one run.
_ALIKE = ("device", "seed", "rounds", "processes", "harness", "selection")
_MEASURE_AGAIN = "measure the shard again with the plan of the others, on a machine like theirs, or plan a new run"
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

    All shards of a run carry the same start in their headers: its date is part of the key. A shard that does not belong
    to those that are stored is refused: a run is immutable, and one wrong shard would spoil it for good.
    """
    if run.header.selection:
        raise BaselineError(
            f"run {run.header.run} measured only {', '.join(run.header.selection)} of its suite, which is no night; "
            "run the suite without --test to store it"
        )
    if run.header.started > datetime.now(UTC) + CLOCK_AHEAD:
        raise BaselineError(
            f"run {run.header.run} started {run.header.started:%Y-%m-%d %H:%M}, which is yet to come: set the clock of "
            "the machine that measured it, and measure again"
        )
    key = run_key(run.header)
    _check_joins(store, run)
    if run.header.shard.count > 1:
        _agree(store, run.header)
    store.create(key, encode_run(run))
    return key


class _Agreement(BaseModel):
    """What all shards of a run have alike: the first one that is stored says it, in one step, for those that are stored
    at the same moment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    made: AwareDatetime
    alike: dict[str, str]


def _agree(store: Store, header: RunHeader) -> None:
    """Raises BaselineError if a shard that differs was stored at the same moment."""
    planned = json.dumps(sorted((test, one.workload.hash, one.skip) for test, one in _planned(header).items()))
    alike = {name: str(getattr(header, name)) for name in _ALIKE} | {
        "build, class or start": run_prefix(header),
        "shards": str(header.shard.count),
        "measuring": str(header.measuring.settings),
        "environment": header.environment.fingerprint,
        "the tests they planned, or the workloads of these": hashlib.sha256(planned.encode()).hexdigest(),
    }
    ours = _Agreement(made=datetime.now(UTC), alike=alike)
    prefix = run_prefix(header)

    def agreed(content: bytes | None) -> bytes:
        there = None if content is None else _Agreement.model_validate_json(content)
        if there is None or (ours.made - there.made > ABANDONED and not _shard_keys(store, prefix)):
            return ours.model_dump_json().encode() + b"\n"  # the writer of an abandoned one was killed before its shard
        if differing := sorted(name for name in alike if there.alike.get(name) != alike[name]):
            raise BaselineError(
                f"shard {header.shard} of run {header.run} is not stored: it differs from another, which was stored at "
                f"the same moment, in {', '.join(differing)}; {_MEASURE_AGAIN}"
            )
        assert content is not None
        return content

    update(store, _agreement_key(header), agreed)


def _agreement_key(header: RunHeader) -> str:
    """By the run's name alone: its build, class and start are among what shards have alike."""
    return f"{AGREEMENTS}/{check_part(header.suite, 'suite')}/{check_part(header.run, 'run id')}.json"


def forget_agreement(store: Store, prefix: str) -> None:
    """Remove the agreement of the shards of a run that is removed itself."""
    for key in store.list(f"{AGREEMENTS}/{parse_run_prefix(prefix)[0]}/"):
        if prefix.endswith(f"-{key.rpartition('/')[2].removesuffix('.json')}"):
            store.delete(key)


def _check_joins(store: Store, shard: Run) -> None:
    """Raises BaselineError if the shard cannot be put together with those of its run that are stored."""
    header, prefix, key = shard.header, run_prefix(shard.header), run_key(shard.header)
    for elsewhere in _elsewhere(store, header) if header.shard.count > 1 else ():
        there = _decode(store, elsewhere).header
        if there.run == header.run:
            raise BaselineError(
                f"shard {header.shard} of run {header.run} is not stored: it would be {key}, but there is "
                f"{elsewhere}, with {_apart(there, header)}; {_MEASURE_AGAIN}"
            )
    stored = [one for one in _shard_keys(store, prefix) if one != key]
    if stored:
        try:
            missing_shards(prefix, [*stored, key])
            _join(prefix, [(one, _decode(store, one)) for one in stored] + [(key, shard)], ())
        except BaselineError as problem:
            raise BaselineError(
                f"shard {header.shard} of run {header.run} is not stored: it does not fit those that are: {problem}"
            ) from problem


def _apart(there: RunHeader, here: RunHeader) -> str:
    """In what of its key a shard differs from one that is stored, with both values."""
    named = {
        "build": (there.build.id, here.build.id),
        "class": (there.machine_class, here.machine_class),
        "start": (there.started.astimezone(UTC), here.started.astimezone(UTC)),
    }
    return " and ".join(
        f"{name} {theirs} instead of {ours}" for name, (theirs, ours) in named.items() if theirs != ours
    )


def _elsewhere(store: Store, header: RunHeader) -> list[str]:
    """Keys of what may be shards of the run of this name, but of another build, class or start."""
    keys = store.list(f"{RUNS}/{check_part(header.suite, 'suite')}/")
    named = [key for key in keys if key.rpartition("/")[0].endswith(f"-{header.run}")]
    return [key for key in named if key.rpartition("/")[0] != run_prefix(header)]


def list_runs(store: Store, suite: str, machine_class: str, month: str = "") -> list[str]:
    """The prefixes of the runs of a suite and class by date (of one month, YYYY-MM, if given).

    Runs of one day come by build and run id: their time stands in the header, and in the history.
    """
    return list(list_shards(store, suite, machine_class, month))


def list_shards(store: Store, suite: str, machine_class: str, month: str = "") -> dict[str, list[str]]:
    """The keys of the shards of each run, by the run's prefix, as `list_runs` gives them."""
    found: dict[str, list[str]] = {}
    for key in store.list(f"{series_prefix(RUNS, suite, machine_class)}/{month}"):
        if _RUN_PREFIX.fullmatch(prefix := key.rpartition("/")[0]) and key.endswith(ENDING):
            found.setdefault(prefix, []).append(key)
    return dict(sorted(found.items()))


def list_series(store: Store) -> list[tuple[str, str]]:
    """Every suite and class of which there are runs."""
    prefixes = {key.rpartition("/")[0] for key in store.list(f"{RUNS}/")}
    return sorted({parse_run_prefix(prefix)[:2] for prefix in prefixes if _RUN_PREFIX.fullmatch(prefix)})


def load_run(store: Store, prefix: str) -> Run:
    """The run of all its shards that are stored, with the names of those that are not.

    Raises BaselineError if there is none at all, or one that is damaged, or of another run.
    """
    parse_run_prefix(prefix)
    keys = _shard_keys(store, prefix)
    if not keys:
        raise BaselineError(f"{store.location}: there is no run {prefix}")
    return _join(prefix, [(key, _decode(store, key)) for key in keys], missing_shards(prefix, keys))


def _shard_keys(store: Store, prefix: str) -> list[str]:
    return [key for key in store.list(f"{prefix}/") if key.endswith(ENDING)]


def _decode(store: Store, key: str) -> Run:
    try:
        return decode_run(store.read(key), f"{store.location}/{key}")
    except zlib.error as error:
        raise BaselineError(f"{store.location}: {key}: a damaged gzip file ({error})") from error


def missing_shards(prefix: str, keys: Sequence[str]) -> tuple[str, ...]:
    """What the run of these shards lacks to be whole, as "i/n"."""
    names = [key.rpartition("/")[2].removesuffix(ENDING) for key in keys]
    shards = [_SHARD.fullmatch("1-of-1" if name == _WHOLE_ONCE else name) for name in names]
    for name, match in zip(names, shards, strict=True):
        if match is None or int(match[1]) > int(match[2]):
            raise BaselineError(f"{prefix}: {name}{ENDING} is not a shard; expected the form i-of-n with i from 1")
    counts = {int(match[2]) for match in shards if match}
    if len(counts) > 1:
        raise BaselineError(f"{prefix}: shards of different divisions: {', '.join(names)}; {_MEASURE_AGAIN}")
    have, count = {int(match[1]) for match in shards if match}, counts.pop()
    return tuple(f"{index}/{count}" for index in range(1, count + 1) if index not in have)


def _join(prefix: str, shards: Sequence[tuple[str, Run]], missing: tuple[str, ...]) -> Run:
    """One run of all shards (with their keys), with the header of the first and the plans of all."""
    header = shards[0][1].header
    every = _planned(header)
    plan: dict[str, PlannedTest] = {}
    records: dict[str, Record] = {}
    for key, shard in shards:
        if run_prefix(shard.header) != prefix:
            raise BaselineError(f"{key}: holds a shard of another run, {run_prefix(shard.header)}; remove it")
        if differing := _differences(header, shard.header):
            raise BaselineError(f"{key} and {shards[0][0]} differ in {', '.join(differing)}; {_MEASURE_AGAIN}")
        plan.update({planned.test: planned for planned in shard.header.plan})
        for record in shard.records:
            if records.setdefault(record.test, record) is not record:
                raise BaselineError(f"{key}: {record.test} has a record in another shard too; {_MEASURE_AGAIN}")
    elsewhere = tuple(planned for test, planned in every.items() if test not in plan)
    # What is not the same for all shards, as the host that each ran on, is nothing that the whole run has.
    observed = set.intersection(*(set(shard.header.environment.observed.items()) for _, shard in shards))
    environment = header.environment.model_copy(update={"observed": dict(sorted(observed))})
    joined = header.model_copy(
        update={"plan": tuple(plan.values()), "elsewhere": elsewhere, "shard": WHOLE, "environment": environment}
    )
    return Run(joined, tuple(records.values()), missing)


def _planned(header: RunHeader) -> dict[str, PlannedTest]:
    """What the run is to measure in all its shards."""
    return {planned.test: planned for planned in (*header.plan, *header.elsewhere)}


def _differences(ours: RunHeader, theirs: RunHeader) -> list[str]:
    """In what two shards differ that must be alike in one run."""
    differing = [name for name in _ALIKE if getattr(ours, name) != getattr(theirs, name)]
    if ours.measuring.settings != theirs.measuring.settings:
        differing.append("measuring")
    if _planned(ours) != _planned(theirs):
        differing.append("the tests they planned, or the workloads of these")
    if ours.environment.fingerprint != theirs.environment.fingerprint:
        facts, others = ours.environment.facts, theirs.environment.facts
        names = sorted(name for name in facts.keys() | others.keys() if facts.get(name) != others.get(name))
        differing.append(f"environment ({', '.join(names) or 'the fingerprint alone'})")
    return differing
