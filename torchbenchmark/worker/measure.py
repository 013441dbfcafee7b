"""Measures one test in this process: build, first batch, warm-up, then the sections that give the channels."""

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch

from torchbenchmark.channels import CHANNELS
from torchbenchmark.experiment import EVAL_MODE_TRAINING
from torchbenchmark.worker import compilation
from torchbenchmark.worker.backends import apply_backend
from torchbenchmark.worker.channels import SECTIONS
from torchbenchmark.worker.channels.memory import cold_gpu_peaks, reset_peak
from torchbenchmark.worker.cuda_events import EventStopwatch
from torchbenchmark.worker.host_probe import HostProbe
from torchbenchmark.worker.launch_probe import LaunchProbe
from torchbenchmark.worker.loading import import_model
from torchbenchmark.worker.precisions import apply_precision
from torchbenchmark.worker.timing import Timed, synchronizer
from torchbenchmark.worker.verify import require_finite


def measure(
    spec: dict[str, Any], model_name: str, folder: str, began: float, enter: Callable[[str], None]
) -> dict[str, Any]:
    """All channels of one test, as plain data ready for JSON.

    `spec` holds the fields of the experiment and of records.Measuring. `began` is the monotonic time from which the
    first batch counts. `enter(stage)` is called as each stage begins.
    """
    reset_peak()
    zygote_imported_dynamo = "torch._dynamo" in sys.modules
    if spec.get("compile_cache") is not None:  # only then, as this imports a compiler
        from torchbenchmark.worker.compile_caches import use_compile_caches

        use_compile_caches(spec["compile_cache"])
    enter("device")
    threads = set_threads(spec["threads"])
    synchronize = synchronizer(spec["device"])
    torch.zeros(1, device=spec["device"])
    synchronize()  # the device is ready: its start-up is no part of what a model's construction may fail on
    imports_s = compilation.watch(spec["backend"])
    enter("build")
    model = import_model(model_name, folder).Model(
        test=spec["test"], device=spec["device"], batch_size=spec["batch_size"], preset=spec["preset"]
    )
    if spec["training_mode"] == EVAL_MODE_TRAINING:
        model.get_module()[0].eval()
    apply_precision(spec["precision"], model)
    apply_backend(spec["backend"], model)
    batch_size = model.batch_size
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"the model's batch_size is {batch_size!r}, not a whole number of at least 1")

    enter("first batch")
    outputs = model.invoke()
    synchronize()
    samples = of_the_first_batch(spec, time.monotonic() - began - imports_s)
    require_finite(outputs, "the first iteration")

    notes: list[str] = []
    stopwatch = EventStopwatch() if spec["device"] == "cuda" else None
    timed = Timed(model, synchronize, spec, _probe(spec["device"], notes), stopwatch)
    enter("warm-up")
    timed.warm_up()

    for section in SECTIONS:
        if not section.applies(spec):
            continue
        enter(section.name)
        try:
            samples |= section.measure(timed)
        except Exception as error:
            if section.required:
                raise
            notes.append(f"{section.name}: not measured, {type(error).__name__}: {str(error)[:300]}")
    enter("verify")
    require_finite(timed.last_outputs, "the last timed iteration")
    return {
        "status": "ok",
        "reason": "",
        "detail": "",
        "batch_size": batch_size,
        "threads": threads,
        "inner_loops": timed.inner_loops,
        "warmup_iterations": timed.warmup_iterations,
        "steady": timed.steady,
        "channels": {name: summarise(name, values) for name, values in samples.items()},
        "notes": notes,
        "imported_dynamo": "torch._dynamo" in sys.modules and not zygote_imported_dynamo,
        "reasons": {channel: lines for channel, lines in timed.reasons.items() if lines},
    } | ({"profile": timed.profile} if timed.profile is not None else {})


def of_the_first_batch(spec: dict[str, Any], seconds: float) -> dict[str, list[float]]:
    """What only the first iteration can tell. In a compiled test that is much else cold than warm: cold is told."""
    if (spec.get("compile_cache") or {}).get("mode", "cold") != "cold":
        return {}
    return {"first_batch": [seconds]} | cold_gpu_peaks(spec["device"])


def _probe(device: str, notes: list[str]) -> Callable[[], float] | None:
    """The host probe for this device; a driver that refuses it leaves a note."""
    if device == "cpu":
        return HostProbe().run
    try:
        return LaunchProbe().run
    except (OSError, AttributeError) as error:
        notes.append(f"host probe: not measured, {error}"[:300])
        return None


def set_threads(threads: int) -> int:
    """Set the CPU threads of this child; its zygote never started a pool. Returns what torch then reports."""
    torch.set_num_threads(threads)
    return torch.get_num_threads()


def summarise(channel: str, samples: list[float]) -> dict[str, Any]:
    """The samples with their unit, median, mean and 20th percentile (linear interpolation)."""
    if not samples or not all(math.isfinite(sample) for sample in samples):
        raise ValueError(f"channel {channel}: no samples, or one that is not finite")
    median, low = numpy.percentile(samples, [50, 20])
    return {
        "unit": CHANNELS[channel].unit,
        "samples": [float(sample) for sample in samples],
        "median": float(median),
        "mean": float(numpy.mean(samples)),
        "p20": float(low),
    }
