"""Workers in threads: all end before the caller goes on, however one of them ends."""

import _thread
import signal
import threading

import pytest

from torchbenchmark.isolation import Stopped
from torchbenchmark.side_by_side import run_side_by_side


def wait_for(stopped: threading.Event) -> None:
    """A worker that would go on for long."""
    if stopped.wait(20):
        raise Stopped


def test_one_worker_runs_in_the_callers_thread_and_several_in_threads_of_their_own():
    seen: list[int] = []
    run_side_by_side([lambda: seen.append(threading.get_ident())], lambda: None)
    assert seen == [threading.get_ident()]
    both = threading.Barrier(2, timeout=20)
    run_side_by_side([lambda: (both.wait(), seen.append(threading.get_ident()))] * 2, lambda: None)
    assert threading.get_ident() not in seen[1:]
    assert len(set(seen[1:])) == 2


def test_what_one_worker_raises_stops_the_others_and_is_raised():
    stopped = threading.Event()
    ended: list[str] = []

    def fail() -> None:
        raise ValueError("no such interpreter")

    def go_on() -> None:
        try:
            wait_for(stopped)
        finally:
            ended.append("the other")

    with pytest.raises(ValueError, match="no such interpreter"):
        run_side_by_side([go_on, fail], stopped.set)
    assert ended == ["the other"]


@pytest.fixture
def interruptible():
    """A process that was started in the background of a script ignores Ctrl-C; this one does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_of_the_caller_stops_all_workers(interruptible):
    stopped = threading.Event()
    ended: list[int] = []

    def go_on() -> None:
        try:
            wait_for(stopped)
        finally:
            ended.append(1)

    def interrupt() -> None:
        _thread.interrupt_main()
        go_on()

    with pytest.raises(KeyboardInterrupt):
        run_side_by_side([go_on, interrupt], stopped.set)
    assert ended == [1, 1]
