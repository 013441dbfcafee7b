"""What each channel is: the one place that states unit, direction and whether it is compared exactly or statistically.

Standard library only: both the driver and the worker read this table.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ChannelKind:
    """How the values of one channel are to be read.

    `exact` channels are counts that are identical every time for the same build and workload; the others are noisy.
    """

    unit: Literal["s", "B", "1", "1/s"]
    better: Literal["lower", "higher"]
    exact: bool
    meaning: str


CHANNELS: dict[str, ChannelKind] = {
    "latency": ChannelKind("s", "lower", False, "synchronised wall time of one iteration"),
    "cpu_time": ChannelKind("s", "lower", False, "process CPU time (user + system, all threads) of one iteration"),
    "host_probe": ChannelKind(
        "s", "lower", False, "CPU time of a fixed bit of work that owes nothing to the build: the speed of the host"
    ),
    "cpu_time_adjusted": ChannelKind(
        "s", "lower", False, "CPU time of one iteration at the host speed at which the probe takes a millisecond"
    ),
    "throughput": ChannelKind("1/s", "higher", False, "batch size over latency"),
    "first_batch": ChannelKind("s", "lower", False, "fork to the first synchronised output, imports excluded"),
    "cpu_memory": ChannelKind(
        "B", "lower", False, "peak resident bytes of the process, less the pages it shares with its zygote"
    ),
    "operators": ChannelKind("1", "lower", True, "ATen operators dispatched in one iteration"),
    "flops": ChannelKind("1", "lower", True, "floating-point operations of one iteration (multiply and add count two)"),
}
