"""What each channel is: the one place that states unit, direction and whether it is compared exactly or statistically.

Standard library only: both the driver and the worker read this table.
"""

from dataclasses import dataclass
from typing import Literal

TIMED_SECTION, COUNTING = "timed section", "operators and flops"  # stages that the driver waits for
# Channels of a warm model, which are the same whatever a process has imported or counts afterwards.
WARM_TIMES = ("latency", "cpu_time", "cpu_time_adjusted", "throughput", "event_latency", "gpu_time", "gpu_busy")


@dataclass(frozen=True)
class ChannelKind:
    """How the values of one channel are to be read.

    `exact` channels are counts that are identical every time for the same build and workload; the others are noisy.
    `side` is whose speed or memory it tells: a `cpu` time follows the speed of the host, so that `host_probe` is its
    covariate; a `gpu` one does not. `judged` channels are compared where two builds are measured side by side; the
    others repeat what a judged one says, or say how well was measured.
    """

    unit: Literal["s", "B", "1", "1/s"]
    better: Literal["lower", "higher"]
    exact: bool
    meaning: str
    side: Literal["cpu", "gpu"] = "cpu"
    judged: bool = True


CHANNELS: dict[str, ChannelKind] = {
    "latency": ChannelKind("s", "lower", False, "synchronised wall time of one iteration"),
    "cpu_time": ChannelKind("s", "lower", False, "process CPU time (user + system, all threads) of one iteration"),
    "host_probe": ChannelKind(
        "s",
        "lower",
        False,
        "time of a fixed bit of work that owes nothing to the build: the speed of the host",
        judged=False,
    ),
    "cpu_time_adjusted": ChannelKind(
        "s", "lower", False, "CPU time of one iteration at the host speed at which the probe takes a millisecond"
    ),
    "throughput": ChannelKind("1/s", "higher", False, "batch size over latency", judged=False),
    "event_latency": ChannelKind(
        "s",
        "lower",
        False,
        "time of one iteration between CUDA events on the current stream, idle gaps included",
        judged=False,
    ),
    "first_batch": ChannelKind("s", "lower", False, "fork to the first synchronised output, imports excluded"),
    "gpu_time": ChannelKind(
        "s", "lower", False, "sum of the durations of the kernels of one iteration, copies apart", side="gpu"
    ),
    "gpu_busy": ChannelKind(
        "s",
        "lower",
        False,
        "time of one iteration in which at least one kernel runs, on whatever stream",
        side="gpu",
        judged=False,
    ),
    "gpu_copies": ChannelKind(
        "s",
        "lower",
        False,
        "sum of the durations of the copies and fills (memcpy, memset) of one iteration",
        side="gpu",
    ),
    "launches": ChannelKind("1", "lower", True, "kernels that ran in one iteration", side="gpu"),
    "gpu_memory": ChannelKind("B", "lower", True, "peak of allocated GPU memory in one warm iteration", side="gpu"),
    "gpu_memory_reserved": ChannelKind(
        "B",
        "lower",
        True,
        "peak of GPU memory that the allocator holds in one warm iteration",
        side="gpu",
        judged=False,
    ),
    # Not exact: where kernels are chosen by trying them, the trials allocate too.
    "gpu_memory_cold": ChannelKind(
        "B", "lower", False, "peak of allocated GPU memory over building the model and its first batch", side="gpu"
    ),
    "gpu_memory_reserved_cold": ChannelKind(
        "B",
        "lower",
        False,
        "peak of GPU memory that the allocator holds over building and first batch",
        side="gpu",
        judged=False,
    ),
    "cpu_memory": ChannelKind(
        "B", "lower", False, "peak resident bytes of the process, less what it has of its zygote and of files"
    ),
    "compile_time_cold": ChannelKind("s", "lower", False, "seconds of compiling in a process whose caches are empty"),
    "compile_time_warm": ChannelKind(
        "s", "lower", False, "seconds of compiling in a process that finds the graphs in this build's own cache"
    ),
    "graphs": ChannelKind("1", "lower", True, "graphs that Dynamo captured"),
    "graph_breaks": ChannelKind("1", "lower", True, "places where Dynamo had to leave the graph, as often as met"),
    "recompiles": ChannelKind("1", "lower", True, "frames that Dynamo compiled again"),
    "cudagraph_skips": ChannelKind("1", "lower", True, "graphs that could not be replayed as CUDA graphs"),
    "operators": ChannelKind("1", "lower", True, "ATen operators dispatched in one iteration"),
    "flops": ChannelKind("1", "lower", True, "floating-point operations of one iteration (multiply and add count two)"),
}
