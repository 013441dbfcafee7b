"""Channel `cpu_memory`: the peak resident bytes of this child, less the pages it shares with its zygote.

The peak is the kernel's high-water mark (VmHWM), reset right after the fork; shared pages are those that the kernel
still counts as shared at the end of the timed section: libraries and the zygote's heap, which the test did not cause.
"""

import re
from pathlib import Path

from torchbenchmark.worker.timing import Timed


def reset_peak() -> None:
    """Start the high-water mark anew. A fork does so too; this also serves a spawned child."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # the kernel was built without it: the mark counts from the fork


def measure(_: Timed) -> dict[str, list[float]]:
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
