"""Channels of memory: `cpu_memory`, and on a GPU what torch's allocator gave out and what it held at most.

`cpu_memory` is the peak resident bytes of this child, less what it has of its zygote and of files.
The peak is the kernel's high-water mark (VmHWM), reset right after the fork. What the test did not cause is taken off
as it stands at the end of the timed section: the zygote's heap, as far as it is still shared, and pages of libraries.
The kernel also counts pages of files as shared or not, but by what other processes on the machine happen to map: beside
another that runs the same libraries, some tens of MiB of them change from one to the other.

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
    status, rollup = "/proc/self/status", "/proc/self/smaps_rollup"
    own = _kilobytes(rollup, "Private_Dirty") - _kilobytes(status, "RssShmem")  # of anonymous memory
    of_the_zygote = max(0, _kilobytes(rollup, "Anonymous") - own)
    peak = _kilobytes(status, "VmHWM") - _kilobytes(status, "RssFile") - of_the_zygote
    return {"cpu_memory": [float(max(0, peak) * 1024)]}


def _kilobytes(file: str, field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB", Path(file).read_text(), re.MULTILINE)
    if match is None:
        raise OSError(f"{file} has no field {field}")
    return int(match[1])
