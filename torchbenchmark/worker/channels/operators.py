"""The profile of a process by operator and by kernel, on request: ordinary measuring pays nothing for it.

The profiler records every operator on the host, with the operators inside it, and every kernel with the operator that
launched it. The host's time of an iteration is then in the operators themselves, in waits for the GPU, or in neither:
that is Python.
"""

import contextlib
import gzip
import hashlib
import math
import re
import shutil
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch

from torchbenchmark.worker.channels.profiler import Activity, LogTail, NoGpuActivity, activity_of
from torchbenchmark.worker.timing import Timed, collector_off

BUDGETS = 2  # of the test's time
LEAST_ITERATIONS, MOST_ITERATIONS = 12, 100
MOST_EVENTS = 150_000  # each takes microseconds to read, and a hundred bytes and more in a trace
LONGEST_NAME = 300
LARGEST_TRACE = 2**30  # bytes before it is compressed
ITERATION = "torchbench iteration"
_DRIVER_CALL = re.compile(r"(cuda|cu|hip)[A-Z]")
_OVERHEAD = ("Activity Buffer Request", "Instrumentation", "Resource", "Lazy Function Loading", "Command Buffer Full")


@dataclass(frozen=True)
class HostEvent:
    """An operator, or a call into the GPU's driver, on the host."""

    name: str
    start_ns: int
    end_ns: int
    thread: int = 1
    id: int = 0
    operator: int = 0  # of a call: the id of the operator that made it

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def waits(self) -> bool:
        """For the GPU."""
        return self.name.endswith("Synchronize") or self.name in ("cudaMemcpy", "hipMemcpy")


@dataclass(frozen=True)
class Recorded:
    """What the profiler recorded."""

    iterations: tuple[HostEvent, ...]
    operators: tuple[HostEvent, ...]
    calls: tuple[HostEvent, ...]
    activities: tuple[tuple[int, Activity], ...]  # each with the id of the operator that launched it


def measure(timed: Timed) -> dict[str, list[float]]:
    """Leaves the profile in `timed.profile`; it is no channel."""
    log = LogTail()
    try:
        with collector_off():
            first, _ = _record(timed, 1)  # the first start takes long, and what it records may be incomplete
            count = iterations_for(timed, len(first.events()))
            results, probes = _record(timed, count)
    except (RuntimeError, AssertionError) as error:  # another profiler of this process is at work
        raise NoGpuActivity(f"the profiler did not start: {error}"[:250]) from error
    recorded = sort_events(results.events())
    if timed.device == "cuda" and not recorded.activities:
        raise NoGpuActivity(f"the profiler recorded no GPU activity{log.told('cupti', 'kineto')}")
    timed.profile = by_name(recorded) | ({"probe_s": statistics.median(probes)} if probes else {})
    if (trace := (timed.profile_request or {}).get("trace")) is not None:
        _save_trace(results, Path(trace))
    return {}


def iterations_for(timed: Timed, events: int) -> int:
    """As many as the budget allows, and no more than can be read; `events` are those of one."""
    affordable = math.floor(BUDGETS * timed.budget_s / max(timed.iteration_s, 1e-6))
    return max(1, min(MOST_ITERATIONS, max(LEAST_ITERATIONS, affordable), MOST_EVENTS // max(events, 1)))


def _record(timed: Timed, iterations: int) -> tuple[Any, list[float]]:
    """What the profiler gives of so many iterations, and the seconds of the host probe between them."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if timed.device == "cuda":
        if torch.profiler.ProfilerActivity.CUDA not in torch.profiler.supported_activities():
            raise NoGpuActivity("this build of torch has no profiler for the GPU")
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    invoke, synchronize = timed.model.invoke, timed.synchronize
    probes = []
    synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(iterations):
            if timed.probe is not None and timed.device == "cpu":  # that of a GPU would launch kernels of its own
                probes.append(timed.probe())
            with torch.profiler.record_function(ITERATION):
                invoke()
                synchronize()
    return profile.profiler.kineto_results, probes


def sort_events(events: Iterable["torch._C._autograd._KinetoEvent"]) -> Recorded:
    iterations, operators, calls, activities = [], [], [], []
    for event in events:
        if (found := activity_of(event)) is not None:
            activities.append((event.linked_correlation_id(), found))
            continue
        if event.device_type() != torch.autograd.DeviceType.CPU:
            continue
        host = HostEvent(
            event.name(),
            event.start_ns(),
            event.start_ns() + event.duration_ns(),
            event.start_thread_id(),
            event.correlation_id(),
            event.linked_correlation_id(),
        )
        if event.is_user_annotation():
            if host.name == ITERATION:
                iterations.append(host)
        elif (kind := _kind(event)) == "call":
            calls.append(host)
        elif kind == "operator" and not event.is_async():
            operators.append(host)
    iterations.sort(key=lambda one: one.start_ns)
    return Recorded(tuple(iterations), tuple(operators), tuple(calls), tuple(activities))


def _kind(event: "torch._C._autograd._KinetoEvent") -> str:
    """operator, call into the driver, or neither. Newer torch says what an activity is; of older the name tells."""
    if hasattr(event, "is_hidden_event") and event.is_hidden_event():
        return ""
    kind = str(event.activity_type()).lower() if hasattr(event, "activity_type") else ""
    if any(letter.isalpha() for letter in kind):
        return "operator" if kind.endswith("cpu_op") else "call" if kind.endswith(("_runtime", "_driver")) else ""
    name = event.name()
    if name in _OVERHEAD:
        return ""
    return "call" if _DRIVER_CALL.match(name) else "operator"


def by_name(recorded: Recorded) -> dict[str, Any]:
    """The profile as plain data, of one iteration."""
    if not recorded.iterations:
        raise ValueError("the profiler recorded no iteration")
    host: dict[str, list[float]] = defaultdict(list)  # name -> nanoseconds in each iteration that has it
    calls: Counter[str] = Counter()
    walls, outsides, waitings = [], [], []
    operators = _of_iterations(recorded.operators, recorded.iterations)
    driver_calls = _of_iterations(recorded.calls, recorded.iterations)
    for iteration in recorded.iterations:
        mine, waits = operators[iteration], [one for one in driver_calls[iteration] if one.waits]
        own: dict[str, float] = defaultdict(float)
        for operator, nanoseconds in own_times(mine, waits):
            own[operator.name] += nanoseconds
            calls[operator.name] += 1
        for name, nanoseconds in own.items():
            host[name].append(max(0.0, nanoseconds))
        walls.append(iteration.duration_ns)
        waitings.append(sum(one.duration_ns for one in waits))
        outsides.append(iteration.duration_ns - covered_ns(iteration, [*mine, *waits]))
    kernels = _kernels(recorded)
    number = len(recorded.iterations)
    return {
        "iterations": number,
        "wall_s": _undisturbed(walls, number),
        "outside_s": _undisturbed(outsides, number),
        "waiting_s": _undisturbed(waitings, number),
        "operators": [
            {
                "name": shortened(name),
                "calls": calls[name] / number,
                "host_s": _undisturbed(host.get(name, []), number),
                "kernels": kernels.get(name, []),
            }
            for name in sorted({*host, *kernels})
        ],
    }


def _undisturbed(nanoseconds: Sequence[float], iterations: int) -> float:
    """Seconds of an iteration: the 20th percentile, as for all times on the host, for a disturbance only adds to what
    it happens to fall on. Iterations that have it not count as 0."""
    return float(numpy.percentile([*nanoseconds, *[0.0] * (iterations - len(nanoseconds))], 20)) / 1e9


def _of_iterations(events: Collection[HostEvent], iterations: Sequence[HostEvent]) -> dict[HostEvent, list[HostEvent]]:
    """The events by the iteration in which they began."""
    ordered = sorted(events, key=lambda one: one.start_ns)
    found: dict[HostEvent, list[HostEvent]] = {one: [] for one in iterations}
    first = 0
    for iteration in sorted(iterations, key=lambda one: one.start_ns):
        while first < len(ordered) and ordered[first].start_ns < iteration.start_ns:
            first += 1
        while first < len(ordered) and ordered[first].start_ns < iteration.end_ns:
            found[iteration].append(ordered[first])
            first += 1
    return found


def own_times(operators: Sequence[HostEvent], waits: Sequence[HostEvent]) -> list[tuple[HostEvent, int]]:
    """Nanoseconds of each operator without the operators inside it on its thread, and without the waits it made."""
    own = {position: one.duration_ns for position, one in enumerate(operators)}
    by_thread: dict[int, list[int]] = defaultdict(list)
    for position, one in enumerate(operators):
        by_thread[one.thread].append(position)
    for positions in by_thread.values():
        positions.sort(key=lambda position: (operators[position].start_ns, -operators[position].end_ns))
        around: list[int] = []
        for position in positions:
            one = operators[position]
            while around and operators[around[-1]].end_ns <= one.start_ns:
                around.pop()
            if around:
                own[around[-1]] -= min(one.end_ns, operators[around[-1]].end_ns) - one.start_ns
            around.append(position)
    by_id = {one.id: position for position, one in enumerate(operators)}
    for wait in waits:
        if wait.operator and wait.operator in by_id:
            own[by_id[wait.operator]] -= wait.duration_ns
    return [(operators[position], nanoseconds) for position, nanoseconds in own.items()]


def covered_ns(iteration: HostEvent, events: Iterable[HostEvent]) -> int:
    """Nanoseconds of the iteration in which at least one of the events was under way, on whatever thread."""
    total, reached = 0, iteration.start_ns
    for one in sorted(events, key=lambda one: one.start_ns):
        end = min(one.end_ns, iteration.end_ns)
        total += max(0, end - max(reached, one.start_ns))
        reached = max(reached, end)
    return total


def _kernels(recorded: Recorded) -> dict[str, list[dict[str, Any]]]:
    """By operator: what ran on the GPU, over all iterations, as nothing of the host disturbs it."""
    names = {one.id: one.name for one in recorded.operators}
    launches: Counter[tuple[str, str, bool]] = Counter()
    durations: Counter[tuple[str, str, bool]] = Counter()
    for operator, activity in recorded.activities:
        key = (names.get(operator, ""), shortened(activity.name), activity.is_copy)
        launches[key] += 1
        durations[key] += activity.duration_ns
    count = len(recorded.iterations)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key in sorted(launches):
        operator, kernel, is_copy = key
        found[operator].append(
            {
                "name": kernel,
                "launches": launches[key] / count,
                "seconds": durations[key] / count / 1e9,
                "is_copy": is_copy,
            }
        )
    return found


def shortened(name: str) -> str:
    """A name of bounded length; two that differ only in what is cut off still differ."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 10]}…{digest}"


def _save_trace(results: Any, path: Path) -> None:
    """The trace for a viewer, compressed; none if it is too large, or cannot be written: the profile stands."""
    plain = path.with_suffix(".plain")
    with contextlib.suppress(Exception):
        results.save(str(plain))
        if plain.stat().st_size <= LARGEST_TRACE:
            with plain.open("rb") as content, gzip.open(path, "wb", compresslevel=5) as compressed:
                shutil.copyfileobj(content, compressed)
    plain.unlink(missing_ok=True)
