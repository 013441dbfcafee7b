"""Pins: names for runs."""

from datetime import UTC, datetime

import pytest
from night_factory import A, run_of

from baselines.errors import BaselineError
from baselines.pins import pinned_night, read_pins, remove_pin, set_pin
from baselines.runs import store_run

SERIES = ("smoke", "cpu-4t")


@pytest.fixture
def store(any_store):
    return any_store


@pytest.fixture
def prefixes(store):
    return [store_run(store, run_of(day, {A: 1.0})).rpartition("/")[0] for day in range(2)]


def test_a_pin_gives_its_run_until_it_is_moved_or_taken_away(store, prefixes):
    assert pinned_night(store, *SERIES) is None
    set_pin(store, "v2.14", prefixes[0])
    assert pinned_night(store, *SERIES, "v2.14").key == prefixes[0]
    set_pin(store, "v2.14", prefixes[1])
    assert pinned_night(store, *SERIES, "v2.14").key == prefixes[1]
    remove_pin(store, *SERIES, "v2.14")
    assert read_pins(store, *SERIES) == {}


def test_without_a_name_the_latest_pin_is_meant(store, prefixes):
    set_pin(store, "a", prefixes[0], now=datetime(2026, 5, 2, tzinfo=UTC))
    set_pin(store, "b", prefixes[1], now=datetime(2026, 5, 1, tzinfo=UTC))
    assert pinned_night(store, *SERIES).key == prefixes[0]


def test_what_cannot_be_pinned_or_found_is_told(store, prefixes):
    with pytest.raises(BaselineError, match="there is no run"):
        set_pin(store, "a", "runs/smoke/cpu-4t/2026-01-01-b-r")
    with pytest.raises(BaselineError, match="name of a pin"):
        set_pin(store, "../a", prefixes[0])
    set_pin(store, "a", prefixes[0])
    with pytest.raises(BaselineError, match="no pin 'b'; there are: a"):
        pinned_night(store, *SERIES, "b")
    with pytest.raises(BaselineError, match="no pin 'b'; there are: a"):
        remove_pin(store, *SERIES, "b")


def test_a_damaged_pin_file_is_an_error_that_names_it(store, prefixes):
    set_pin(store, "a", prefixes[0])
    key = "pins/smoke/cpu-4t.json"
    assert store.write_if(key, b"{}", store.read_versioned(key).version)
    with pytest.raises(BaselineError, match=r"pins/smoke/cpu-4t\.json"):
        read_pins(store, *SERIES)


def test_every_write_carries_a_nonce_of_its_own(store, prefixes):
    def content():
        return store.read("pins/smoke/cpu-4t.json")

    set_pin(store, "a", prefixes[0], now=datetime(2026, 5, 2, tzinfo=UTC))
    first = content()
    set_pin(store, "a", prefixes[0], now=datetime(2026, 5, 2, tzinfo=UTC))
    assert content() != first
