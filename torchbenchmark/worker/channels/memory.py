"""Channels of memory: `cpu_memory`, and on a GPU what torch's allocator gave out and what it held at most.

`cpu_memory` is the peak resident bytes of this child, less the pages it shares with its zygote.
The peak is the kernel's high-water mark (VmHWM), reset right after the fork; shared pages are those that the kernel
still counts as shared at the end of the timed section: libraries and the zygote's heap, which the test did not cause.

On the GPU the cold peaks are those from the start of the child to the end of its first batch, the warm ones those of
one more iteration after the timed section. What the CUDA context and libraries take beside the allocator is not seen.
"""

import re
from pathlib import Path

import torch

from torchbenchmark.worker.timing import Timed


def reset_peak() -> None:
    """Start the high-water mark anew. A fork does so too; this also serves a spawned child."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # the kernel was built without it: the mark counts from the fork


def measure(timed: Timed) -> dict[str, list[float]]:
    return _host_peak() | (_warm_gpu_peaks(timed) if timed.device == "cuda" else {})


def cold_gpu_peaks(device: str) -> dict[str, list[float]]:
    """The peaks until now, to be asked for right after the first batch; nothing on the CPU."""
    return _gpu_peaks("_cold") if device == "cuda" else {}


def _warm_gpu_peaks(timed: Timed) -> dict[str, list[float]]:
    timed.synchronize()
    torch.cuda.reset_peak_memory_stats()
    timed.model.invoke()
    timed.synchronize()
    return _gpu_peaks("")


def _gpu_peaks(when: str) -> dict[str, list[float]]:
    return {
        f"gpu_memory{when}": [float(torch.cuda.max_memory_allocated())],
        f"gpu_memory_reserved{when}": [float(torch.cuda.max_memory_reserved())],
    }


def _host_peak() -> dict[str, list[float]]:
    peak = _kilobytes("/proc/self/status", "VmHWM")
    shared = _kilobytes("/proc/self/smaps_rollup", "Shared_Clean") + _kilobytes(
        "/proc/self/smaps_rollup", "Shared_Dirty"
    )
    return {"cpu_memory": [float(max(0, peak - shared) * 1024)]}


def _kilobytes(file: str, field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB", Path(file).read_text(), re.MULTILINE)
    if match is None:
        raise OSError(f"{file} has no field {field}")
    return int(match[1])
