"""Channels of the timed section: `latency`, `cpu_time`, `throughput`, `event_latency`, and those of the host probe."""

from torchbenchmark.worker import compilation
from torchbenchmark.worker.host_probe import at_reference_speed
from torchbenchmark.worker.timing import Samples, Timed


class Recompiled(Exception):
    """The model was compiled while it was timed, whenever it was: there is no steady state to time."""


def measure(timed: Timed) -> dict[str, list[float]]:
    """A value per timed unit: seconds of one iteration (wall, CPU, CUDA events), items a second, seconds of the probe.

    The probe of the CPU has a known reference speed, to which CPU time is adjusted; that of a GPU test is a covariate.
    """
    samples = sample_without_compiling(timed)
    channels = {
        "latency": samples.walls,
        "cpu_time": samples.cpus,
        "throughput": [timed.model.batch_size / wall for wall in samples.walls],
    }
    if samples.events is not None:
        channels["event_latency"] = samples.events
    if samples.probes is not None:
        channels["host_probe"] = samples.probes
        if timed.device == "cpu":
            channels["cpu_time_adjusted"] = [
                at_reference_speed(cpu, probe) for cpu, probe in zip(samples.cpus, samples.probes, strict=True)
            ]
    return channels


def sample_without_compiling(timed: Timed) -> Samples:
    """The samples of a section in which nothing was compiled: one in which something was is void, and timed once more.

    Raises Recompiled if that happens again.
    """
    counts = []
    for _ in range(2):
        before = compilation.compilations()
        samples = timed.sample()
        if (new := compilation.compilations() - before) == 0:
            return samples
        counts.append(new)
    why = next(reversed(compilation.recompile_reasons()), "a frame that had not run before")
    raise Recompiled(
        f"compiled {counts[0]} times while it was timed, and {counts[1]} times when timed again; last {why}"
    )
