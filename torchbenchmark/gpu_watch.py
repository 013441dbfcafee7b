"""Watches the GPU while a run is measured: clocks, temperature, power, and what holds its clocks back.

One nvidia-smi runs as long as the run does and tells several times a second. It may be missing, die or hang: then
nothing is known of the GPU, and the run goes on. The reasons are those of NVML (nvmlClocksEventReasons).
"""

import contextlib
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from torchbenchmark.records import GpuState

PERIOD_S = 0.2
KEPT_READINGS = 20_000  # an hour; a process that lasts longer is told of by its end
END_GRACE_S = 1.0
VALUES = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # drivers before 535 know only the second

_REASON_BITS = {
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
}
_HARMLESS_BITS = 0x001 | 0x002 | 0x100  # idle, clocks as they were set, clocks of a display
# A full load reaches the power cap on a healthy GPU; heat and a failing supply are faults of the machine.
_FAULTS = frozenset(_REASON_BITS.values()) - {"sw_power_cap", "sync_boost"}


@dataclass(frozen=True)
class Reading:
    """What the GPU said at one moment (monotonic seconds); None for what it does not tell."""

    at: float
    clock_sm_mhz: float | None
    clock_mem_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    reasons: int | None


def parse_reading(line: str, at: float) -> Reading | None:
    """The reading in a line of nvidia-smi's answer to VALUES and one of REASONS; None if it is something else."""
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != len(VALUES) + 1:
        return None
    numbers = [_number(field) for field in fields[:-1]]
    reasons = None
    with contextlib.suppress(ValueError):
        reasons = int(fields[-1], 16)
    if reasons is None and not any(number is not None for number in numbers):
        return None
    return Reading(at, *numbers, reasons)


def _number(field: str) -> float | None:
    """None for "[N/A]", "[Not Supported]", "[Unknown Error]" and the like."""
    try:
        number = float(field)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def summarise(readings: Sequence[Reading]) -> GpuState | None:
    """What was told over some time; None if nothing was."""
    if not readings:
        return None
    bits = 0
    for reading in readings:
        bits |= reading.reasons or 0
    names = [name for bit, name in _REASON_BITS.items() if bits & bit]
    known = _HARMLESS_BITS | sum(_REASON_BITS)
    if unknown := bits & ~known:
        names.append(f"{unknown:#x}")
    return GpuState(
        readings=len(readings),
        clock_sm_mhz=_range([reading.clock_sm_mhz for reading in readings]),
        clock_mem_mhz=_range([reading.clock_mem_mhz for reading in readings]),
        temperature_c=_largest([reading.temperature_c for reading in readings]),
        power_w=_largest([reading.power_w for reading in readings]),
        throttled=tuple(names),
    )


def faults(state: GpuState | None) -> list[str]:
    """The reasons that make a measurement one of the machine's trouble: heat, power supply, hardware slowdown."""
    return [reason for reason in state.throttled if reason in _FAULTS] if state is not None else []


def _range(values: Sequence[float | None]) -> tuple[float, float] | None:
    told = [value for value in values if value is not None]
    return (min(told), max(told)) if told else None


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


class GpuWatch:
    """Use as a context manager around the run. Asking it never waits for anything."""

    def __init__(self, gpu: str) -> None:
        """`gpu` is its number or UUID, as nvidia-smi and CUDA_VISIBLE_DEVICES name it."""
        self.gpu = gpu
        self.problem: str | None = None  # why nothing more comes
        self._readings: deque[Reading] = deque(maxlen=KEPT_READINGS)
        self._process: subprocess.Popen[str] | None = None
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._reading = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="gpu-watch", daemon=True)

    def __enter__(self) -> "GpuWatch":
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._starting:  # nothing is started from now on
            self._closing.set()
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(END_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()  # one that hangs in the driver does not obey this either; it is left behind
        self._reader.join(END_GRACE_S)

    def between(self, began: float, ended: float) -> GpuState | None:
        """What was told from `began` until a period after `ended` (monotonic seconds); None if nothing was."""
        with self._reading:
            told = list(self._readings)
        return summarise([reading for reading in told if began <= reading.at <= ended + PERIOD_S])

    def _read(self) -> None:
        """In the reader's thread: nvidia-smi with each spelling of the reasons, until one gives readings."""
        smi = shutil.which("nvidia-smi")
        if smi is None:
            self.problem = "nvidia-smi is not installed"
            return
        said = ""
        for reasons in REASONS:
            said = self._read_from(_command(smi, self.gpu, reasons))
            if self._closing.is_set():
                return
            if self._readings:
                break
        self.problem = f"nvidia-smi ended: {said}" if said else "nvidia-smi ended without a word"

    def _read_from(self, command: Sequence[str]) -> str:
        """Take readings until the process ends; returns its last line that was none."""
        said = ""
        with self._starting:
            if self._closing.is_set():
                return said
            try:
                process = self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    errors="replace", start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                return f"{error.strerror}"
        assert process.stdout is not None
        for line in process.stdout:
            if (reading := parse_reading(line, time.monotonic())) is not None:
                with self._reading:
                    self._readings.append(reading)
            elif line.strip():
                said = line.strip()[:200]
        return said


def _command(smi: str, gpu: str, reasons: str) -> list[str]:
    query = ",".join((*VALUES, reasons))
    command = [
        smi, f"--query-gpu={query}", "--format=csv,noheader,nounits", f"--id={gpu}",
        f"--loop-ms={round(PERIOD_S * 1000)}",
    ]  # fmt: skip
    # Into a pipe a program may write in blocks: a reading would be minutes old when it comes.
    stdbuf = shutil.which("stdbuf")
    return [stdbuf, "-oL", *command] if stdbuf else command
