"""How far a pair's CPU-side times follow the speed of the host, which the host probe beside them tells.

A virtual CPU changes its speed for seconds at a time, so that the two processes of a pair may have had different hosts.
A test that waits for the host follows it; one that keeps the GPU busy does not, and to adjust it would put the probe's
noise where there was none. What lies between is decided per pair, by the share of the iteration in which the GPU was
busy (docs/measuring.md has the data).
"""

import math
from collections.abc import Mapping

from torchbenchmark.statistics.covariate import MOST_SLOPE, PRIOR_SLOPE

PROBE = "host_probe"
ADJUSTED = ("latency", "event_latency", "cpu_time")  # timed between two probes
RESTS_ON_PROBE = {"cpu_time_adjusted": "cpu_time"}  # each process has divided by its probe; and what
# How the logarithm of such a time follows that of the probe where no A/A table tells: on a GPU host against a hundred
# tiny launches, on the CPU against a bit of numpy and Python.
SLOPES = {"cuda": PRIOR_SLOPE, "cpu": 0.77}
STEEPEST = {"cuda": MOST_SLOPE, "cpu": 0.95}  # that was ever seen: no table is fitted a steeper one
GPU_BOUND, HOST_BOUND = 0.9, 0.5  # shares of an iteration in which the GPU is busy


def takes_covariate(channel: str) -> bool:
    """Whether the channel follows the speed of the host at the moment in which the probe was run beside it."""
    return channel in ADJUSTED


def log_ratio(base: float, head: float) -> float:
    """ln(head / base) of two numbers above 0, also where their quotient is none that a float holds."""
    return math.log(head) - math.log(base)


def host_log_ratio(base: Mapping[str, float], head: Mapping[str, float], device: str) -> float | None:
    """ln(probe of head / probe of base) as far as the pair follows the host, from the channels of both processes.

    None where nothing tells: there was no probe, or on a GPU no profile that says how busy it was.
    """
    if min(base.get(PROBE, 0.0), head.get(PROBE, 0.0)) <= 0:
        return None
    ratio = log_ratio(base[PROBE], head[PROBE])
    if device == "cpu":
        return ratio
    busy = [_busy_share(side) for side in (base, head)]
    known = [share for share in busy if share is not None]
    return host_bound(min(known)) * ratio if len(known) == len(busy) else None


def host_bound(busy: float) -> float:
    """From 0 (the GPU sets the time of the iteration) to 1 (the host does)."""
    return min(1.0, max(0.0, (GPU_BOUND - busy) / (GPU_BOUND - HOST_BOUND)))


def _busy_share(locations: Mapping[str, float]) -> float | None:
    if locations.get("latency", 0.0) <= 0 or "gpu_busy" not in locations:
        return None
    return locations["gpu_busy"] / locations["latency"]
