"""Runs the workers of a run side by side, each in a thread of its own; a single one in the caller's.

A thread lives as long as its worker: the kernel ends a zygote together with the thread that started it.
"""

import threading
from collections.abc import Callable, Sequence

from torchbenchmark.isolation import Stopped

_LOOK_S = 0.5  # a signal is handled between two looks at the threads


def run_side_by_side(work: Sequence[Callable[[], None]], stop: Callable[[], None]) -> None:
    """Return when all have ended. What one raises, or Ctrl-C here, stops the others and is raised when they have ended.

    `stop()` makes whatever the others wait for raise Stopped or BrokenBarrierError.
    """
    if len(work) == 1:
        work[0]()
        return
    failures: list[BaseException] = []

    def guarded(one: Callable[[], None]) -> None:
        try:
            one()
        except (Stopped, threading.BrokenBarrierError):
            pass
        except BaseException as error:
            failures.append(error)
            stop()

    threads = [threading.Thread(target=guarded, args=(one,), daemon=True) for one in work]
    try:
        for thread in threads:
            thread.start()
        _wait(threads)
    except BaseException:
        stop()
        _wait(threads)
        raise
    if failures:
        raise failures[0]


def _wait(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK_S)
