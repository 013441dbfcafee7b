"""Channels of the timed section: `latency`, `cpu_time`, `throughput`."""

from torchbenchmark.worker.timing import Timed


def measure(timed: Timed) -> dict[str, list[float]]:
    """Seconds of one iteration (wall, process CPU) and items a second, a value a timed unit."""
    walls, cpus = timed.sample()
    return {
        "latency": walls,
        "cpu_time": cpus,
        "throughput": [timed.model.batch_size / wall for wall in walls],
    }
