"""The history: per suite, class and month one object with the nights in few numbers, so that detection reads a bounded
number of objects. Derived from the runs, always to the same bytes; only of nights whose runs were removed (baseline gc)
it holds what could not be made again."""

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.errors import BaselineError
from baselines.runs import list_runs, list_shards, load_run, missing_shards, parse_run_prefix, series_prefix
from baselines.series import NightSummary, chronological, summarise
from baselines.store.interface import Store, update
from torchbenchmark.errors import SentinelError

SCHEMA = 1
# How far reading goes back, in months, tonight's included: bounds the objects that one detection reads.
MONTHS_BACK = 13


class _Month(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["history"] = "history"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    nights: tuple[NightSummary, ...] = ()
    # Keys of nights whose runs were removed (baselines/retention.py): of these, this is the only copy.
    removed: tuple[str, ...] = ()

    @property
    def by_key(self) -> dict[str, NightSummary]:
        return {night.key: night for night in self.nights}

    @property
    def irreplaceable(self) -> "_Month":
        """The month without what can be made again from runs."""
        kept = tuple(night for night in self.nights if night.key in self.removed)
        return _Month(nights=kept, removed=self.removed)


@dataclass(frozen=True)
class Rebuilt:
    """What rebuilding a history gave."""

    months: tuple[str, ...]
    nights: int
    left_out: tuple[str, ...]  # why, one line for each run that could not be read


def add_night(store: Store, prefix: str) -> NightSummary:
    """Put a stored run into the history of its month, and with it any run of the month that an interrupted writer left
    out. Several writers may do so at once. Raises BaselineError if the run itself cannot be read."""
    suite, machine_class, month = parse_run_prefix(prefix)
    key = _month_key(suite, machine_class, month)
    night: NightSummary

    def add(content: bytes | None) -> bytes:
        # Read at each attempt: the writer that was faster may have stored another shard of this very run.
        nonlocal night
        known = _known(store, key, content)
        if prefix in known.removed and prefix in known.by_key:
            raise BaselineError(f"{prefix}: its records were removed (baseline gc), so nothing can be added to them")
        night = summarise(load_run(store, prefix))
        others = tuple(one for one in known.nights if one.key != prefix)
        return _encode(
            _completed(store, suite, machine_class, month, _Month(nights=(*others, night), removed=known.removed))[0]
        )

    update(store, key, add)
    return night


def rebuild_history(store: Store, suite: str, machine_class: str) -> Rebuilt:
    """Make every month of the history again from the runs, but for nights whose runs were removed: these stay.

    A run that cannot be read is left out and told.
    """
    kept = {key.rpartition("/")[2].removesuffix(".json.gz") for key in store.list(f"{_history(suite, machine_class)}/")}
    months = sorted(kept | {parse_run_prefix(prefix)[2] for prefix in list_runs(store, suite, machine_class)})
    nights, left_out = 0, []
    for month in months:
        found, problems = _rebuild_month(store, suite, machine_class, month)
        nights += len(found)
        left_out += problems
    return Rebuilt(tuple(months), nights, tuple(left_out))


def keep_without_runs(
    store: Store, suite: str, machine_class: str, month: str, prefixes: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Mark nights of a month as kept by the history alone, so that their runs may be removed.

    Returns those that the history holds now, and why it lacks others.
    """
    key = _month_key(suite, machine_class, month)
    kept: list[str] = []
    problems: list[str] = []

    def mark(content: bytes | None) -> bytes:
        nonlocal kept, problems
        whole, problems = _completed(store, suite, machine_class, month, _known(store, key, content))
        kept = [prefix for prefix in prefixes if prefix in whole.by_key]
        return _encode(whole.model_copy(update={"removed": tuple(sorted({*whole.removed, *kept}))}))

    update(store, key, mark)
    return kept, problems


def read_nights(
    store: Store,
    suite: str,
    machine_class: str,
    count: int,
    *,
    before: datetime,
    wanted: Callable[[NightSummary], bool] = lambda night: True,
    read_only: bool = False,
) -> list[NightSummary]:
    """The last `count` (at least one) wanted nights that started before a time, oldest first, and any between them.

    Reads at most MONTHS_BACK history objects. A month whose history is missing or damaged is made again from its runs,
    and stored unless `read_only`.
    """
    nights: list[NightSummary] = []
    for month in _months_back(before.date()):
        earlier = [
            night for night in _read_month(store, suite, machine_class, month, read_only) if night.started < before
        ]
        nights = earlier + nights
        chosen = [index for index, night in enumerate(nights) if wanted(night)]
        if len(chosen) >= count:
            return nights[chosen[-count] :]
    return nights


def _months_back(day: date) -> list[str]:
    """This month and those before it, newest first, as YYYY-MM."""
    months = [day.year * 12 + day.month - 1 - back for back in range(MONTHS_BACK)]
    return [f"{month // 12:04}-{month % 12 + 1:02}" for month in months]


def _history(suite: str, machine_class: str) -> str:
    return series_prefix("history", suite, machine_class)


def _month_key(suite: str, machine_class: str, month: str) -> str:
    return f"{_history(suite, machine_class)}/{month}.json.gz"


def _read_month(store: Store, suite: str, machine_class: str, month: str, read_only: bool) -> Sequence[NightSummary]:
    content = store.read_if_present(_month_key(suite, machine_class, month))
    if (known := _decode(content)) is not None and known.nights:
        return known.nights
    if content is None and not list_runs(store, suite, machine_class, month):
        return ()
    if read_only:
        return chronological(list(_completed(store, suite, machine_class, month, _Month())[0].nights))
    return _rebuild_month(store, suite, machine_class, month)[0]


def _rebuild_month(store: Store, suite: str, machine_class: str, month: str) -> tuple[list[NightSummary], list[str]]:
    key = _month_key(suite, machine_class, month)
    rebuilt, problems = _Month(), []

    def build(content: bytes | None) -> bytes:
        # Listed again at each attempt: the writer that was faster has probably added a night.
        nonlocal rebuilt, problems
        rebuilt, problems = _completed(store, suite, machine_class, month, _known(store, key, content).irreplaceable)
        return _encode(rebuilt)

    update(store, key, build)
    return chronological(list(rebuilt.nights)), problems


def _completed(store: Store, suite: str, machine_class: str, month: str, known: _Month) -> tuple[_Month, list[str]]:
    """The month with every stored run in it, and why which run could not be read: `known` may lack some, and others
    may have got a further shard since."""
    nights, problems = known.by_key, []
    for prefix, keys in list_shards(store, suite, machine_class, month).items():
        try:
            if prefix not in nights or _has_grown(nights[prefix], keys, known):
                nights[prefix] = summarise(load_run(store, prefix))
        except SentinelError as error:
            problems.append(str(error))
    return _Month(nights=tuple(nights.values()), removed=known.removed), problems


def _has_grown(night: NightSummary, keys: Sequence[str], known: _Month) -> bool:
    """Whether shards have come since the night was summarised. What is half removed has not grown."""
    if not night.missing_shards or night.key in known.removed:
        return False
    return missing_shards(night.key, keys) != night.missing_shards


def _encode(month: _Month) -> bytes:
    """Canonical bytes: nights in order, keys sorted, no time stamp in the gzip header."""
    ordered = month.model_copy(update={"nights": tuple(chronological(list(month.nights)))})
    content = ordered.model_dump(mode="json", by_alias=True)
    if not month.removed:
        del content["removed"]
    try:
        text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except ValueError as error:
        raise BaselineError(
            "a night holds a value that is not finite; only nights of recorded runs are kept"
        ) from error
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(text.encode())
    return buffer.getvalue()


def _decode(content: bytes | None) -> _Month | None:
    """The month; None if the object is missing, damaged or of another schema: it is then made again."""
    if content is None:
        return None
    try:
        return _Month.model_validate_json(gzip.decompress(content))
    except (OSError, EOFError, zlib.error, ValidationError):
        return None


def _known(store: Store, key: str, content: bytes | None) -> _Month:
    """The month that is about to be written again. One that cannot be read is kept aside first: it may hold the only
    copy of nights whose runs were removed."""
    known = _decode(content)
    if content is not None and known is None:
        store.create(f"unreadable/{key}-{hashlib.sha256(content).hexdigest()[:12]}", content)
    return known or _Month()
