"""Where the state of a class is kept: one small object in the store, changed by conditional write only."""

import secrets
from datetime import datetime

from pydantic import ValidationError

from baselines.confirming.state import ClassState
from baselines.errors import BaselineError
from baselines.runs import series_prefix
from baselines.store.interface import Store
from torchbenchmark.yaml_files import first_problem


def read_state(store: Store, suite: str, machine_class: str) -> tuple[ClassState, str | None]:
    """The state, with the version that `write_state` replaces; a class without any has an empty one."""
    key = _key(suite, machine_class)
    found = store.read_versioned(key)
    if found is None:
        return ClassState(), None
    try:
        return ClassState.model_validate_json(found.content), found.version
    except ValidationError as error:
        raise BaselineError(
            f"{store.location}: {key}: {first_problem(error)}; mend it, or remove it to start without segments"
        ) from error


def write_state(store: Store, suite: str, machine_class: str, state: ClassState, version: str | None) -> None:
    """Store the state that a night came to from the one of `version`. The same night written twice is one.

    Raises BaselineError if another writer was faster with another night: what it found stands.
    """
    key = _key(suite, machine_class)
    state.nonce = secrets.token_hex(8)
    if store.write_if(key, _content(state), version):
        return
    there, _ = read_state(store, suite, machine_class)
    if there.last_night != state.last_night:
        raise BaselineError(
            f"{store.location}: {key}: another night was concluded meanwhile ({there.last_night}); conclude this one "
            "again, from what that one left"
        )


def set_concluded(store: Store, suite: str, machine_class: str, night: datetime) -> None:
    """Say that what a night came to is in the alerts. Of a night that newer ones have overtaken nothing is said."""
    state, version = read_state(store, suite, machine_class)
    if state.outcome is None or state.outcome.night != night or state.concluded == night:
        return
    state.concluded = night
    # Who was faster has concluded it too, or has gone on. The nonce stays: to a question it is the same state.
    store.write_if(_key(suite, machine_class), _content(state), version)


def _content(state: ClassState) -> bytes:
    return state.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def _key(suite: str, machine_class: str) -> str:
    return f"{series_prefix('confirming', suite, machine_class)}.json"
