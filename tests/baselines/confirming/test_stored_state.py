"""The state of a class in a store."""

from datetime import UTC, datetime

import pytest

from baselines.confirming.seen import SeriesKey
from baselines.confirming.state import ClassState, SeriesState
from baselines.confirming.stored_state import read_state, write_state
from baselines.errors import BaselineError
from baselines.store import open_store

NIGHT = datetime(2026, 3, 1, tzinfo=UTC)


def concluded(day):
    state = ClassState(last_night=NIGHT.replace(day=day), bucket=7.5)
    state.series["t c"] = SeriesState(prior=0.1, weight=4.0)
    return state


def test_a_state_comes_back_as_it_was(any_store):
    empty, version = read_state(any_store, "smoke", "cpu-4t")
    assert (empty, version) == (ClassState(), None)
    write_state(any_store, "smoke", "cpu-4t", concluded(2), version)
    found, version = read_state(any_store, "smoke", "cpu-4t")
    assert found == concluded(2).model_copy(update={"nonce": found.nonce}) and version is not None
    assert found.of(SeriesKey("t", "c")).prior == 0.1
    write_state(any_store, "smoke", "cpu-4t", concluded(3), version)
    assert read_state(any_store, "smoke", "cpu-4t")[0].last_night.day == 3
    assert read_state(any_store, "other", "cpu-4t")[0] == ClassState()


def test_of_two_writers_of_one_night_either_may_win_and_of_two_nights_the_first(any_store):
    write_state(any_store, "smoke", "cpu-4t", concluded(2), None)
    write_state(any_store, "smoke", "cpu-4t", concluded(2), None)
    with pytest.raises(BaselineError, match="another night was concluded meanwhile"):
        write_state(any_store, "smoke", "cpu-4t", concluded(3), None)
    assert read_state(any_store, "smoke", "cpu-4t")[0].last_night.day == 2


def test_a_state_that_cannot_be_read_names_its_object_and_the_cure(tmp_path):
    store = open_store(str(tmp_path))
    assert store.write_if("confirming/smoke/cpu-4t.json", b'{"kind": "confirming", "schema": 1, "bucket": "x"}', None)
    with pytest.raises(BaselineError, match=r"confirming/smoke/cpu-4t.json: key bucket: .*mend it, or remove it"):
        read_state(store, "smoke", "cpu-4t")
