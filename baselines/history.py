"""The history: per suite, class and month one object with the nights in few numbers, so that detection reads a bounded
number of objects. Derived from the runs: it holds nothing that could not be made again, and always the same bytes."""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.errors import BaselineError
from baselines.runs import list_runs, load_run, parse_run_prefix, series_prefix
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
    nights: tuple[NightSummary, ...]


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
    night = summarise(load_run(store, prefix))

    def add(content: bytes | None) -> bytes:
        known = _decode(content)
        found, _ = _summarise_missing(store, suite, machine_class, month, [*known, night])
        return _encode({one.key: one for one in (*known, *found, night)}.values())

    update(store, _month_key(suite, machine_class, month), add)
    return night


def rebuild_history(store: Store, suite: str, machine_class: str) -> Rebuilt:
    """Make every month of the history again from the runs alone. A run that cannot be read is left out and told."""
    months = sorted({parse_run_prefix(prefix)[2] for prefix in list_runs(store, suite, machine_class)})
    nights, left_out = 0, []
    for month in months:
        found, problems = _rebuild_month(store, suite, machine_class, month)
        nights += len(found)
        left_out += problems
    return Rebuilt(tuple(months), nights, tuple(left_out))


def read_nights(
    store: Store,
    suite: str,
    machine_class: str,
    count: int,
    *,
    before: datetime,
    wanted: Callable[[NightSummary], bool] = lambda night: True,
) -> list[NightSummary]:
    """The last `count` (at least one) wanted nights that started before a time, oldest first, and any between them.

    Reads at most MONTHS_BACK history objects. A month whose history is missing or damaged is rebuilt from its runs.
    """
    nights: list[NightSummary] = []
    for month in _months_back(before.date()):
        earlier = [night for night in _read_month(store, suite, machine_class, month) if night.started < before]
        nights = earlier + nights
        chosen = [index for index, night in enumerate(nights) if wanted(night)]
        if len(chosen) >= count:
            return nights[chosen[-count] :]
    return nights


def _months_back(day: date) -> list[str]:
    """This month and those before it, newest first, as YYYY-MM."""
    months = [day.year * 12 + day.month - 1 - back for back in range(MONTHS_BACK)]
    return [f"{month // 12:04}-{month % 12 + 1:02}" for month in months]


def _month_key(suite: str, machine_class: str, month: str) -> str:
    return f"{series_prefix('history', suite, machine_class)}/{month}.json.gz"


def _read_month(store: Store, suite: str, machine_class: str, month: str) -> Sequence[NightSummary]:
    content = store.read_if_present(_month_key(suite, machine_class, month))
    if nights := _decode(content):
        return nights
    if content is None and not list_runs(store, suite, machine_class, month):
        return ()
    return _rebuild_month(store, suite, machine_class, month)[0]


def _rebuild_month(store: Store, suite: str, machine_class: str, month: str) -> tuple[list[NightSummary], list[str]]:
    nights: list[NightSummary] = []
    problems: list[str] = []

    def build(_: bytes | None) -> bytes:
        # Listed again at each attempt: the writer that was faster has probably added a night.
        nights[:], problems[:] = _summarise_missing(store, suite, machine_class, month, ())
        return _encode(nights)

    update(store, _month_key(suite, machine_class, month), build)
    return chronological(nights), problems


def _summarise_missing(
    store: Store, suite: str, machine_class: str, month: str, known: Sequence[NightSummary]
) -> tuple[list[NightSummary], list[str]]:
    """The month's nights that are not `known`, and why which run could not be read."""
    have = {night.key for night in known}
    nights, problems = [], []
    for prefix in list_runs(store, suite, machine_class, month):
        if prefix in have:
            continue
        try:
            nights.append(summarise(load_run(store, prefix)))
        except SentinelError as error:
            problems.append(str(error))
    return nights, problems


def _encode(nights: Sequence[NightSummary]) -> bytes:
    """Canonical bytes: nights in order, keys sorted, no time stamp in the gzip header."""
    month = _Month(nights=tuple(chronological(list(nights)))).model_dump(mode="json", by_alias=True)
    try:
        text = json.dumps(month, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except ValueError as error:
        raise BaselineError(
            "a night holds a value that is not finite; only nights of recorded runs are kept"
        ) from error
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(text.encode())
    return buffer.getvalue()


def _decode(content: bytes | None) -> tuple[NightSummary, ...]:
    """The nights of a month; none if the object is missing, damaged or of another schema: it is then made again."""
    if content is None:
        return ()
    try:
        return _Month.model_validate_json(gzip.decompress(content)).nights
    except (OSError, EOFError, zlib.error, ValidationError):
        return ()
