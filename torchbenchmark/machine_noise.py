"""What makes a machine noisy, read from the system, each with its cure. Reads only; nothing is changed."""

import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torchbenchmark.quantity import counted
from torchbenchmark.worker.host_probe import HostProbe

PROBES = 300  # of the host probe, a millisecond each
STEAL_SECONDS = 1.0
NOISY_PROBE = 1.05  # 95th percentile over median
SMI_TIMEOUT_S = 15


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    noisy: bool
    seen: str
    cure: str = ""


@dataclass(frozen=True)
class Readings:
    """Where the facts come from, so that every rule is tried without the machine it speaks of."""

    read: Callable[[str], str | None]  # a file of the system; None if it is not there
    cpus: int
    load: float
    smi: Callable[[str], str | None]  # nvidia-smi's answer to a query, in CSV; None if there is no GPU
    probe: Callable[[], list[float]]
    steal: Callable[[], float | None]  # share of CPU time that the hypervisor took


def examine(readings: Readings, threads: int, device: str) -> list[Finding]:
    """Everything that is known to move a measurement on this machine."""
    return [*_cpu(readings, threads), *_memory(readings), *(_gpu(readings) if device == "cuda" else ())]


def _cpu(readings: Readings, threads: int) -> Iterator[Finding]:
    governor = readings.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor is not None:
        yield Finding(
            "CPU governor", governor != "performance", governor, "cpupower frequency-set --governor performance"
        )
    no_turbo = readings.read("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = readings.read("/sys/devices/system/cpu/cpufreq/boost")
    if no_turbo is not None or boost is not None:
        on = no_turbo == "0" or boost == "1"
        cure = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo" if no_turbo is not None else ""
        cure = cure or "echo 0 > /sys/devices/system/cpu/cpufreq/boost"
        yield Finding("turbo", on, "on: clocks depend on heat and on the other cores" if on else "off", cure)
    smt = readings.read("/sys/devices/system/cpu/smt/control")
    if smt is not None:
        yield Finding(
            "SMT", smt == "on", f"{smt}: two threads may share a core" if smt == "on" else smt,
            "echo off > /sys/devices/system/cpu/smt/control",
        )  # fmt: skip
    if "hypervisor" in (readings.read("/proc/cpuinfo") or ""):
        yield Finding(
            "virtual machine", True, "its CPUs are shared with strangers",
            "a machine of one's own; else judge GPU time and counts, and CPU-side times by pairs with the host probe",
        )  # fmt: skip
    steal = readings.steal()
    if steal is not None:
        yield Finding(
            "stolen CPU time", steal > 0.005, f"{steal:.1%}", "a host with fewer neighbours, or dedicated CPUs"
        )
    quota = (readings.read("/sys/fs/cgroup/cpu.max") or "max").split()
    if quota[0] != "max":
        yield Finding("CPU quota", True, f"{int(quota[0]) / int(quota[1]):g} CPUs", "a container without a CPU limit")
    yield Finding(
        "load", readings.load > 0.5, f"{readings.load:.2f} in the last minute", "end what else runs, or wait for it"
    )
    yield Finding(
        "CPUs", readings.cpus <= threads, f"{readings.cpus} for tests of {counted(threads, 'thread')} and the driver",
        "fewer --threads than CPUs",
    )  # fmt: skip
    values = readings.probe()
    ratio = statistics.quantiles(values, n=20)[-1] / statistics.median(values)
    seen = f"median {statistics.median(values) * 1e3:.3f} ms; one in 20 takes over {ratio - 1:.1%} longer"
    yield Finding(
        "host probe", ratio > NOISY_PROBE, seen, "see the lines above; pairs with the probe as covariate help"
    )


def _memory(readings: Readings) -> Iterator[Finding]:
    swaps = (readings.read("/proc/swaps") or "").splitlines()[1:]
    used = sum(int(line.split()[3]) for line in swaps if len(line.split()) > 3)
    if swaps:
        yield Finding("swap", used > 0, f"{used // 1024} MiB used", "swapoff -a, or more memory")
    pages = readings.read("/sys/kernel/mm/transparent_hugepage/enabled")
    if pages is not None:
        chosen = re.search(r"\[(\w+)\]", pages)
        name = chosen[1] if chosen else pages
        yield Finding(
            "huge pages", name == "always", name,
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: which process gets them is chance",
        )  # fmt: skip


def _gpu(readings: Readings) -> Iterator[Finding]:
    fields = ("name", "persistence_mode", "temperature.gpu", "clocks.sm", "clocks.max.sm", "power.limit")
    fields += ("power.default_limit", "mig.mode.current", "utilization.gpu")
    answer = readings.smi(f"--query-gpu={','.join(fields)}")
    if answer is None:
        yield Finding("GPU", True, "nvidia-smi did not answer", "install the driver's tools")
        return
    for number, line in enumerate(answer.splitlines()):
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(fields):
            yield from _one_gpu(number, dict(zip(fields, values, strict=True)))
    apps = [line for line in (readings.smi("--query-compute-apps=pid,name") or "").splitlines() if line.strip()]
    yield Finding("other work on the GPU", bool(apps), "; ".join(apps) or "none", "end it, or measure on another GPU")


def _one_gpu(number: int, gpu: dict[str, str]) -> Iterator[Finding]:
    name = f"GPU {number} {gpu['name']}"
    off = gpu["persistence_mode"] == "Disabled"
    yield Finding(f"{name}: persistence", off, gpu["persistence_mode"], f"nvidia-smi -i {number} -pm 1")
    hot = _number(gpu["temperature.gpu"])
    if hot is not None:
        yield Finding(f"{name}: temperature", hot >= 80, f"{hot:g} °C", "better cooling: it slows down near 85 °C")
    limit, default = _number(gpu["power.limit"]), _number(gpu["power.default_limit"])
    if limit is not None and default is not None:
        yield Finding(
            f"{name}: power limit", limit < default, f"{limit:g} W of {default:g} W",
            f"nvidia-smi -i {number} -pl {default:g}",
        )  # fmt: skip
    busy = _number(gpu["utilization.gpu"])
    if busy is not None:
        yield Finding(f"{name}: busy", busy > 5, f"{busy:g} %", "end what else runs on it")
    now, most = _number(gpu["clocks.sm"]), _number(gpu["clocks.max.sm"])
    if now is not None and most is not None:
        yield Finding(
            f"{name}: clocks", False, f"{now:g} of {most:g} MHz now",
            f"nvidia-smi -i {number} -lgc fixes them, if throttling shows in the records",
        )  # fmt: skip


def _number(text: str) -> float | None:
    found = re.match(r"[0-9.]+", text)
    return float(found[0]) if found else None


def of_this_machine() -> Readings:
    """The readings of the machine that this runs on."""
    return Readings(
        read=_read,
        cpus=len(os.sched_getaffinity(0)),
        load=os.getloadavg()[0],
        smi=_smi,
        probe=_probe,
        steal=_steal,
    )


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _smi(query: str) -> str | None:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    try:
        return subprocess.run(
            [smi, query, "--format=csv,noheader"], capture_output=True, text=True, check=True, timeout=SMI_TIMEOUT_S
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def _probe() -> list[float]:
    probe = HostProbe()
    return [probe.run() for _ in range(PROBES)]


def _steal() -> float | None:
    def times() -> list[int]:
        line = (_read("/proc/stat") or "").partition("\n")[0]
        return [int(field) for field in line.split()[1:9]]

    before = times()
    time.sleep(STEAL_SECONDS)
    after = times()
    if len(before) < 8 or len(after) < 8:
        return None
    passed = [late - early for early, late in zip(before, after, strict=True)]
    return passed[7] / sum(passed) if sum(passed) else None
