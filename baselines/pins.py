"""Pins: names for runs that stay a baseline until they are moved, such as a release. One small object per suite and
class, changed by conditional write."""

import secrets
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.errors import BaselineError
from baselines.runs import load_run, parse_run_prefix, series_prefix
from baselines.series import NightSummary, UtcTime, summarise
from baselines.store.interface import Store, check_part, update
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1


class Pin(BaseModel):
    """A name's run, and since when."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str  # its prefix in the store
    pinned: UtcTime


class _Pins(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["pins"] = "pins"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    # Of the last writer: no two writes have the same bytes.
    nonce: str
    pins: dict[str, Pin]


def read_pins(store: Store, suite: str, machine_class: str) -> dict[str, Pin]:
    """The pins of a suite and class by name."""
    key = _key(suite, machine_class)
    return _decode(store, key, store.read_if_present(key))


def set_pin(store: Store, name: str, prefix: str, *, now: datetime | None = None) -> None:
    """Let `name` mean this run. Raises BaselineError if the run is not in the store or cannot be read."""
    check_part(name, "name of a pin")
    suite, machine_class, _ = parse_run_prefix(prefix)
    load_run(store, prefix)
    pin = Pin(run=prefix, pinned=now or datetime.now(UTC))
    key = _key(suite, machine_class)
    update(store, key, lambda content: _encode({**_decode(store, key, content), name: pin}))


def remove_pin(store: Store, suite: str, machine_class: str, name: str) -> None:
    key = _key(suite, machine_class)

    def remove(content: bytes | None) -> bytes:
        pins = _decode(store, key, content)
        if name not in pins:
            raise BaselineError(f"{store.location}: {key}: no pin {name!r}; there are: {', '.join(pins) or 'none'}")
        return _encode({other: pin for other, pin in pins.items() if other != name})

    update(store, key, remove)


def pinned_night(store: Store, suite: str, machine_class: str, name: str | None = None) -> NightSummary | None:
    """The night of a pin; without a name that of the latest pin, or None if nothing is pinned."""
    pins = read_pins(store, suite, machine_class)
    if name is None:
        if not pins:
            return None
        name = max(pins, key=lambda pinned: (pins[pinned].pinned, pinned))
    if name not in pins:
        raise BaselineError(
            f"{store.location}: {suite} on {machine_class} has no pin {name!r}; there are: {', '.join(pins) or 'none'}"
        )
    return summarise(load_run(store, pins[name].run))


def _key(suite: str, machine_class: str) -> str:
    return f"{series_prefix('pins', suite, machine_class)}.json"


def _encode(pins: dict[str, Pin]) -> bytes:
    content = _Pins(nonce=secrets.token_hex(8), pins=dict(sorted(pins.items())))
    return content.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def _decode(store: Store, key: str, content: bytes | None) -> dict[str, Pin]:
    if content is None:
        return {}
    try:
        return _Pins.model_validate_json(content).pins
    except ValidationError as error:
        raise BaselineError(f"{store.location}: {key}: {first_problem(error)}; remove it and pin again") from error
