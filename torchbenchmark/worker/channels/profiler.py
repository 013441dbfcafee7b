"""Channels `gpu_time`, `gpu_busy`, `gpu_copies` and `launches`: what ran on the GPU, from a section of its own.

The profiler takes what CUPTI recorded: every kernel and copy with its start and duration in the GPU's time, also those
that a CUDA graph replays. It costs time on the host, so nothing is timed meanwhile. Only GPU activity is recorded, and
it is read as it comes, without the tree of operators that the profiler would build from it.
"""

import itertools
import math
import os
import stat
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from torchbenchmark.worker.timing import Timed, collector_off

BUDGET_SHARE = 0.3  # of the test's time budget
LEAST_ITERATIONS = 5
MOST_ITERATIONS = 30
# Between two iterations the GPU idles this long: the end of one and the start of the next can then be told apart even
# if the clocks of host and GPU, which the profiler brings into line, differ by up to half of it.
PAUSE_S = 0.0002
_COPIES = ("Memcpy ", "Memset ", "memcpy ", "memset ")
_TOLD_LINES = 3


class NoGpuActivity(Exception):
    """The profiler gave nothing to measure: CUPTI is held by another profiler, refused, or lost track."""


@dataclass(frozen=True)
class Activity:
    """One kernel or copy on the GPU."""

    name: str
    start_ns: int
    duration_ns: int
    stream: int = 0
    is_copy: bool = False

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


def measure(timed: Timed) -> dict[str, list[float]]:
    """A value per profiled iteration; raises NoGpuActivity with what the profiler itself said if there are none."""
    if torch.profiler.ProfilerActivity.CUDA not in torch.profiler.supported_activities():
        raise NoGpuActivity("this build of torch has no profiler for the GPU")
    iterations = iterations_for(timed)
    log = LogTail()
    try:
        with collector_off():
            _profile(timed, 1)  # the first start of CUPTI takes long, and what it records may be incomplete
            activities, marks = _profile(timed, iterations)
    except (RuntimeError, AssertionError) as error:  # another profiler of this process is at work
        raise NoGpuActivity(f"the profiler did not start: {error}"[:250]) from error
    if not activities:
        raise NoGpuActivity(f"the profiler recorded no GPU activity{log.told('cupti', 'kineto')}")
    return per_iteration(activities, marks)


def iterations_for(timed: Timed) -> int:
    """As many iterations as the section's share of the budget allows, within limits."""
    affordable = math.floor(BUDGET_SHARE * timed.budget_s / max(timed.iteration_s, 1e-6))
    return min(MOST_ITERATIONS, max(LEAST_ITERATIONS, affordable))


def per_iteration(activities: Sequence[Activity], marks: Sequence[tuple[int, int]]) -> dict[str, list[float]]:
    """The channels, a value per iteration; `marks` are the (first, last) moments of each, nanoseconds of the host."""
    iterations = split(activities, marks)
    kernels = [[activity for activity in iteration if not activity.is_copy] for iteration in iterations]
    copies = [[activity for activity in iteration if activity.is_copy] for iteration in iterations]
    return {
        "gpu_time": [sum(kernel.duration_ns for kernel in iteration) / 1e9 for iteration in kernels],
        "gpu_busy": [union_ns(iteration) / 1e9 for iteration in kernels],
        "gpu_copies": [sum(copy.duration_ns for copy in iteration) / 1e9 for iteration in copies],
        "launches": [float(len(iteration)) for iteration in kernels],
    }


def split(activities: Sequence[Activity], marks: Sequence[tuple[int, int]]) -> list[list[Activity]]:
    """The activities of each iteration, by start.

    As the device is idle between iterations, those of one are neighbours in time. Where every iteration launched the
    same, equal parts are exact and need no clock; else the host's marks decide.
    """
    ordered = sorted(activities, key=lambda activity: (activity.start_ns, activity.end_ns))
    size, rest = divmod(len(ordered), len(marks))
    if rest == 0 and size > 0:
        parts = [ordered[first : first + size] for first in range(0, len(ordered), size)]
        names = [Counter(activity.name for activity in part) for part in parts]
        if all(part == names[0] for part in names):
            return parts
    return _split_by_marks(ordered, marks)


def _split_by_marks(ordered: Sequence[Activity], marks: Sequence[tuple[int, int]]) -> list[list[Activity]]:
    slack = int(PAUSE_S * 1e9 / 2)
    if ordered[0].start_ns < marks[0][0] - slack or max(one.end_ns for one in ordered) > marks[-1][1] + slack:
        raise NoGpuActivity(
            "the profiler's times lie outside of the profiled iterations, which differ from each other: "
            "the clocks of GPU and host disagree, so no kernel can be given to its iteration"
        )
    borders = [(before[1] + after[0]) / 2 for before, after in itertools.pairwise(marks)]
    parts: list[list[Activity]] = [[] for _ in marks]
    number = 0
    for activity in ordered:
        while number < len(borders) and activity.start_ns >= borders[number]:
            number += 1
        parts[number].append(activity)
    if not all(parts):
        raise NoGpuActivity("the profiler recorded GPU activity in some of the iterations only")
    return parts


def union_ns(activities: Sequence[Activity]) -> int:
    """Nanoseconds in which at least one of them runs."""
    total, reached = 0, 0
    for activity in sorted(activities, key=lambda activity: activity.start_ns):
        total += max(0, activity.end_ns - max(reached, activity.start_ns))
        reached = max(reached, activity.end_ns)
    return total


def activity_of(event: "torch._C._autograd._KinetoEvent") -> Activity | None:
    """The kernel or copy that an event of the profiler tells of; None for a call on the host or a user's annotation."""
    if event.device_type() == torch.autograd.DeviceType.CPU or event.is_user_annotation():
        return None
    name = event.name()
    # Newer torch says what kind an activity is; a synchronisation on the GPU is neither kernel nor copy.
    kind = str(event.activity_type()).lower() if hasattr(event, "activity_type") else ""
    if "annotation" in kind or "sync" in kind:
        return None
    return Activity(
        name,
        event.start_ns(),
        event.duration_ns(),
        event.device_resource_id(),
        is_copy=name.startswith(_COPIES) or "memcpy" in kind or "memset" in kind,
    )


def _profile(timed: Timed, iterations: int) -> tuple[list[Activity], list[tuple[int, int]]]:
    """What ran on the GPU in so many iterations, and the host's time (since the epoch) around each."""
    invoke, synchronize = timed.model.invoke, timed.synchronize
    marks = []
    synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(iterations):
            time.sleep(PAUSE_S)
            began = time.time_ns()
            invoke()
            synchronize()
            marks.append((began, time.time_ns()))
        time.sleep(PAUSE_S)
    results = profile.profiler.kineto_results if profile.profiler is not None else None
    if results is None:
        return [], marks
    return [found for event in results.events() if (found := activity_of(event)) is not None], marks


class LogTail:
    """What is written to this process's standard error from now on, where that is a file: CUPTI's refusals go there."""

    def __init__(self) -> None:
        self.began = _size_of_log()

    def told(self, *words: str) -> str:
        """The last lines with one of the words in them, as the end of a sentence; empty if there are none."""
        if self.began is None:
            return ""
        try:
            with Path("/proc/self/fd/2").open("rb") as log:
                log.seek(self.began)
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        found = [line.strip() for line in lines if any(word in line.lower() for word in words)]
        return f": {' | '.join(found[-_TOLD_LINES:])}" if found else ""


def _size_of_log() -> int | None:
    try:
        state = os.fstat(2)
    except OSError:
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None
