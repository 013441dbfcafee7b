"""Where alerts are kept: one small object per suite and class in the store, changed by conditional write only."""

import secrets
from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.runs import series_prefix
from baselines.store import Store
from baselines.store.interface import update
from bot.errors import BotError
from bot.github.alert import Alert
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
ALERTS = "alerts"


class _Alerts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["alerts"] = "alerts"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    nonce: str  # of the last writer: no two writes have the same bytes
    alerts: tuple[Alert, ...]


def read_alerts(store: Store, suite: str, machine_class: str) -> tuple[Alert, ...]:
    key = _key(suite, machine_class)
    return _decode(store, key, store.read_if_present(key))


def find_alert(store: Store, key: str) -> Alert | None:
    """The alert of a key, whatever its suite and class."""
    for place in sorted(store.list(f"{ALERTS}/")):
        for alert in _decode(store, place, store.read_if_present(place)):
            if alert.key == key:
                return alert
    return None


def has_alerts(store: Store, suite: str, machine_class: str) -> bool:
    """Whether it is known what there is, be it nothing: so it is of a class of which a night was concluded."""
    return store.read_if_present(_key(suite, machine_class)) is not None


def change_alerts(
    store: Store, suite: str, machine_class: str, change: Callable[[tuple[Alert, ...]], tuple[Alert, ...]]
) -> tuple[Alert, ...]:
    """Apply `change` to what is stored, again if another writer was faster, and return what is stored then."""
    key = _key(suite, machine_class)
    result: tuple[Alert, ...] = ()

    def apply(content: bytes | None) -> bytes:
        nonlocal result
        before = _decode(store, key, content)
        result = change(before)
        if content is not None and result == before:
            return content
        document = _Alerts(nonce=secrets.token_hex(8), alerts=result)
        return document.model_dump_json(by_alias=True, indent=1).encode() + b"\n"

    update(store, key, apply)
    return result


def _key(suite: str, machine_class: str) -> str:
    return f"{series_prefix(ALERTS, suite, machine_class)}.json"


def _decode(store: Store, key: str, content: bytes | None) -> tuple[Alert, ...]:
    if content is None:
        return ()
    try:
        return _Alerts.model_validate_json(content).alerts
    except ValidationError as error:
        raise BotError(
            f"{store.location}: {key}: {first_problem(error)}; mend it, or remove it to start without alerts"
        ) from error
