"""CUDA events around a timed unit: what the unit took in the GPU's own time."""

import torch


class EventStopwatch:
    """Started before a unit and stopped after its last call, both on the current stream; read once the device is idle.

    The time between the two holds what the stream waited for the host: that is the latency of the iteration as the
    stream sees it, not the time of its kernels. Work on other streams counts as far as the current one waits for it.
    """

    def __init__(self) -> None:
        self.first = torch.cuda.Event(enable_timing=True)
        self.last = torch.cuda.Event(enable_timing=True)

    def start(self) -> None:
        self.first.record()

    def stop(self) -> None:
        self.last.record()

    def seconds(self) -> float:
        return self.first.elapsed_time(self.last) / 1e3
