"""Where the workers of a run measure: one worker for each visible GPU, on CPU cores of its own where there are enough.

All GPUs of a run are of the model that its class names. Another one that is visible too is left alone.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    index: int  # of the worker
    device_index: int | None = None  # of its GPU, among those that are visible to the driver
    gpu: str | None = None  # the same as CUDA_VISIBLE_DEVICES names it
    cpus: tuple[int, ...] = ()  # the cores that its processes may use; empty for all

    @property
    def variables(self) -> dict[str, str]:
        """What its zygotes need in their environment: they see no other GPU."""
        return {} if self.gpu is None else {"CUDA_VISIBLE_DEVICES": self.gpu}


def gpus_of_one_model(names: Sequence[str]) -> list[int]:
    """Which of the visible GPUs are like the first."""
    return [index for index, name in enumerate(names) if name == names[0]]


def places(device: str, workers: int, threads: int, gpus: Sequence[str], cpus: Sequence[int]) -> tuple[Place, ...]:
    """One place a worker; more workers than GPUs share them. `gpus` are the names of all that are visible.

    Each gets as many cores as every other, next to one another, if those are enough for its threads.
    """
    share = len(cpus) // workers
    pinned = workers > 1 and share >= threads
    shares = [tuple(sorted(cpus)[index * share : (index + 1) * share]) if pinned else () for index in range(workers)]
    if device != "cuda":
        return tuple(Place(index, cpus=shares[index]) for index in range(workers))
    alike = gpus_of_one_model(gpus)
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    found = []
    for index in range(workers):
        gpu = alike[index % len(alike)]
        found.append(Place(index, gpu, named[gpu] if gpu < len(named) else str(gpu), shares[index]))
    return tuple(found)
