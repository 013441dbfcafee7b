"""Channels of the timed section: `latency`, `cpu_time`, `throughput`, and on the CPU those of the host probe."""

from torchbenchmark.worker.host_probe import at_reference_speed
from torchbenchmark.worker.timing import Timed


def measure(timed: Timed) -> dict[str, list[float]]:
    """A value per timed unit: seconds of one iteration (wall, CPU), items a second, CPU seconds of the probe."""
    samples = timed.sample()
    channels = {
        "latency": samples.walls,
        "cpu_time": samples.cpus,
        "throughput": [timed.model.batch_size / wall for wall in samples.walls],
    }
    if samples.probes is not None:
        channels["host_probe"] = samples.probes
        channels["cpu_time_adjusted"] = [
            at_reference_speed(cpu, probe) for cpu, probe in zip(samples.cpus, samples.probes, strict=True)
        ]
    return channels
