"""Channels of the timed section: `latency`, `cpu_time`, `throughput`, `event_latency`, and those of the host probe."""

from torchbenchmark.worker.host_probe import at_reference_speed
from torchbenchmark.worker.timing import Timed


def measure(timed: Timed) -> dict[str, list[float]]:
    """A value per timed unit: seconds of one iteration (wall, CPU, CUDA events), items a second, seconds of the probe.

    The probe of the CPU has a known reference speed, to which CPU time is adjusted; that of a GPU test is a covariate.
    """
    samples = timed.sample()
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
