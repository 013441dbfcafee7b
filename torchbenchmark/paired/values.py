"""What the processes of a pair gave, as the comparison and the A/A study look at it: samples, and one location each."""

from collections.abc import Mapping
from dataclasses import dataclass

from torchbenchmark.channels import CHANNELS
from torchbenchmark.records import Channel, Process
from torchbenchmark.statistics.location import statistic_for


@dataclass(frozen=True)
class ProcessValues:
    """One process: the iterations of each channel collapsed to one location, for iterations are no replicates."""

    zygote: str
    locations: Mapping[str, float]
    samples: Mapping[str, tuple[float, ...]]


def values_of(process: Process) -> ProcessValues:
    """The values of a process that ended ok."""
    known = {name: channel for name, channel in process.channels.items() if name in CHANNELS}
    return ProcessValues(
        zygote=process.zygote,
        locations={name: location(name, channel) for name, channel in known.items()},
        samples={name: channel.samples for name, channel in known.items()},
    )


def location(name: str, channel: Channel) -> float:
    """A time on the host's clock by its 20th percentile, as what disturbs an iteration only adds to it; all else by the
    median."""
    kind = CHANNELS[name]
    on_host = kind.unit == "s" and kind.side == "cpu"
    return channel.p20 if statistic_for("host" if on_host else "device") == "p20" else channel.median
