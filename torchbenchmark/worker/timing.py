"""The timed loop: units of at least ten milliseconds, warmed up until steady, with the collector off."""

import gc
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

WINDOW = 10  # timed units whose trimmed means are compared to see whether the warm-up is over
STEADY_SLOPE = 0.01
TRIM = 2  # units left out at each end of a window
ALIKE = 2.0  # a unit that takes this many times another's time did other work: it compiled, say
SPECIALISING = {"jit": 3}  # iterations after the first in which a backend may still compile, as of a training
# How far a warm-up may go on beyond its cap, waiting for two units that are alike: units, and times the cap.
MOST_UNITS_BEYOND_CAP, MOST_CAPS_BEYOND_CAP = 10, 10


class Invocable(Protocol):
    batch_size: int

    def invoke(self) -> tuple[torch.Tensor, ...]: ...


class Stopwatch(Protocol):
    """A second clock beside the host's: read after the device has finished."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def seconds(self) -> float: ...


def synchronizer(device: str) -> Callable[[], None]:
    """What waits until the device has finished all work; nothing to wait for on the CPU."""
    return torch.cuda.synchronize if device == "cuda" else _nothing


def _nothing() -> None:
    return None


class Timed:
    """A model with the length of its timed unit. One unit is `inner_loops` iterations and one synchronise."""

    def __init__(
        self,
        model: Invocable,
        synchronize: Callable[[], None],
        spec: dict[str, Any],
        probe: Callable[[], float] | None = None,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        """`probe` gives the seconds of a fixed bit of work; it is run between the timed units."""
        self.model = model
        self.synchronize = synchronize
        self.probe = probe
        self.stopwatch = stopwatch
        self.device: str = spec.get("device", "cpu")
        self.profile_request: dict[str, Any] | None = spec.get("profile")
        self.profile: dict[str, Any] | None = None  # of operators and kernels, where one was asked for
        self.specialising: int = SPECIALISING.get(spec.get("backend", ""), 0)
        self.cache_mode: str = (spec.get("compile_cache") or {}).get("mode", "")  # cold, fill or warm; none if eager
        self.budget_s = spec["budget_s"]
        self.warmup_cap_s = spec["warmup_cap_s"]
        self.min_unit_s = spec["min_unit_s"]
        self.min_samples = spec["min_samples"]
        self.inner_loops = 1
        self.reasons: dict[str, list[str]] = {}  # channel -> where its count comes from
        self.iteration_s = 0.0  # wall seconds of one iteration, as last seen
        self.warmup_iterations = 1  # the first batch
        self.steady = False
        self.last_outputs: tuple[torch.Tensor, ...] = ()

    def unit(self) -> tuple[float, float]:
        """Run one timed unit. Returns (wall seconds, process CPU seconds) of the whole unit."""
        invoke, synchronize, loops = self.model.invoke, self.synchronize, range(self.inner_loops)
        stopwatch = self.stopwatch
        outputs: tuple[torch.Tensor, ...] = ()
        wall_began = time.perf_counter()
        cpu_began = time.process_time()
        if stopwatch is not None:
            stopwatch.start()
        for _ in loops:
            outputs = invoke()
        if stopwatch is not None:
            stopwatch.stop()
        synchronize()
        cpu = time.process_time() - cpu_began
        wall = time.perf_counter() - wall_began
        self.last_outputs = outputs
        self.iteration_s = wall / self.inner_loops
        return wall, cpu

    def warm_up(self) -> None:
        """Run until the trimmed mean of ten units moved by under 1 % against the ten before, or to a cap. There,
        go on a little while the next iteration may compile something, or the last one did: it would be timed.
        """
        deadline = time.perf_counter() + self.warmup_cap_s
        walls: deque[float] = deque(maxlen=2 * WINDOW)
        last_deadline = deadline + MOST_CAPS_BEYOND_CAP * self.warmup_cap_s
        beyond_cap = 0
        with collector_off():
            while True:
                wall, _ = self.unit()
                self.warmup_iterations += self.inner_loops
                if self._lengthen_unit(wall):
                    walls.clear()
                else:
                    walls.append(wall)
                    self.steady = is_steady(walls)
                if self.steady:
                    return
                now = time.perf_counter()
                if now >= deadline:
                    if self._settled(walls) or beyond_cap == MOST_UNITS_BEYOND_CAP or now >= last_deadline:
                        return
                    beyond_cap += 1

    def _settled(self, walls: Sequence[float]) -> bool:
        """True if nothing is still to be compiled, as far as the number of iterations and the last two units tell."""
        if self.warmup_iterations <= self.specialising or len(walls) < 2:
            return False
        before, last = walls[-2], walls[-1]
        return max(before, last) < ALIKE * min(before, last)

    def _lengthen_unit(self, wall: float) -> bool:
        """Loop more often if the last unit was too short to be timed well. True if that changed the unit."""
        if wall >= self.min_unit_s:
            return False
        aim = 1.2 * self.min_unit_s  # some room, so that a slightly faster iteration does not change it again
        self.inner_loops = max(self.inner_loops + 1, math.ceil(self.inner_loops * aim / max(wall, 1e-7)))
        return True

    def sample(self) -> "Samples":
        """Timed units until the budget is spent, with a probe before the first, between any two and after the last."""
        walls: list[float] = []
        cpus: list[float] = []
        probes: list[float] = []
        events: list[float] = []
        with collector_off():
            deadline = time.perf_counter() + self.budget_s
            before = self.probe() if self.probe else 0.0
            while len(walls) < self.min_samples or time.perf_counter() < deadline:
                wall, cpu = self.unit()
                after = self.probe() if self.probe else 0.0
                walls.append(wall / self.inner_loops)
                cpus.append(cpu / self.inner_loops)
                if self.stopwatch is not None:
                    events.append(self.stopwatch.seconds() / self.inner_loops)
                probes.append((before + after) / 2)
                before = after
        if any(tensor.is_cuda for tensor in self.last_outputs):  # they may lie where a CUDA graph writes the next ones
            self.last_outputs = tuple(tensor.detach().clone() for tensor in self.last_outputs)
        return Samples(walls, cpus, probes if self.probe else None, events if self.stopwatch else None)


@dataclass(frozen=True)
class Samples:
    """One value per timed unit."""

    walls: list[float]  # seconds of one iteration
    cpus: list[float]  # process CPU seconds of one iteration
    probes: list[float] | None  # seconds of the host probe beside the unit; None without one
    events: list[float] | None = None  # seconds of one iteration on the stopwatch; None without one


def is_steady(walls: Sequence[float]) -> bool:
    """True if the last WINDOW units and the WINDOW before have trimmed means within STEADY_SLOPE of each other."""
    if len(walls) < 2 * WINDOW:
        return False
    values = list(walls)
    before, last = _trimmed_mean(values[-2 * WINDOW : -WINDOW]), _trimmed_mean(values[-WINDOW:])
    return abs(last - before) < STEADY_SLOPE * before


def _trimmed_mean(values: Sequence[float]) -> float:
    kept = sorted(values)[TRIM : len(values) - TRIM]
    return sum(kept) / len(kept)


@contextmanager
def collector_off():
    """No garbage collection inside: one would charge the garbage of many iterations to a single one."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
