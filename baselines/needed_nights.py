"""Which runs of a class are looked back to, however old they are: those of pins, of the newest nights, of the nights
that segments begin with, and of what a change that is not settled yet is measured from."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime

from baselines.confirming.stored_state import read_state
from baselines.pins import read_pins
from baselines.runs import list_runs
from baselines.store.interface import Store

# Of a suite and class: more nights that something looks back to, such as the alerts that are open.
NightsOf = Callable[[Store, str, str], Collection[datetime]]

# The last good build of a change lies before its onset, and that up to 14 nights back; a week more for steps back.
KEEP_NIGHTS = 21


def no_others(store: Store, suite: str, machine_class: str) -> Collection[datetime]:
    return ()


def looked_back_to(store: Store, suite: str, machine_class: str, others: NightsOf = no_others) -> set[str]:
    """The runs, by their prefix, that a pin names or that a later night may measure again.

    Of a night its day is taken, as the names of runs tell it: no run need be read, so that none that cannot be makes
    another seem unneeded. Raises BaselineError if the pins or the state of the class cannot be read.
    """
    state, _ = read_state(store, suite, machine_class)
    runs = list_runs(store, suite, machine_class)
    every = sorted({_day_of_run(run) for run in runs})
    days = {_day(night) for night in (*state.nights_needed, *others(store, suite, machine_class))}
    late = every[-KEEP_NIGHTS:]
    for told, night in state.builds_that_moved_most:  # what is found later of their kind is asked by them, for a while
        if late and _day(told) >= late[0]:
            days |= {_day(night), *[day for day in every if day < _day(night)][-1:]}
    pinned = {pin.run for pin in read_pins(store, suite, machine_class).values()}
    return pinned | {run for run in runs if _day_of_run(run) in days}


def newest(store: Store, suite: str, machine_class: str, nights: int) -> set[str]:
    """The runs of the newest days of a class."""
    runs = list_runs(store, suite, machine_class)
    days = sorted({_day_of_run(run) for run in runs})[-nights:]
    return {run for run in runs if _day_of_run(run) in days}


def _day(night: datetime) -> str:
    return night.astimezone(UTC).date().isoformat()


def _day_of_run(prefix: str) -> str:
    return prefix.rpartition("/")[2][: len("2026-11-28")]
