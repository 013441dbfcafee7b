"""One channel of one test over its pairs, as logarithms: how each pair's host moved it is taken out, as far as the host
probe tells.

Pure: it knows nothing of how the pairs were measured. ln(head / base) is positive where head is slower.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy
from scipy import special

from torchbenchmark.channels import CHANNELS
from torchbenchmark.paired.host_speed import PROBE, RESTS_ON_PROBE, SLOPES, host_log_ratio, log_ratio, takes_covariate
from torchbenchmark.paired.noise_table import NoiseTable
from torchbenchmark.statistics.covariate import adjusted_log_ratios

FEWEST_PROBES = 3  # two pairs cannot say whether the probe itself moved, and are not adjusted by it
ROUNDING = 1e-12  # log ratios that differ by less are one ratio, written in two ways


@dataclass(frozen=True)
class PairOfValues:
    """What one pair gave: per channel the location of either side."""

    base: Mapping[str, float]
    head: Mapping[str, float]


@dataclass(frozen=True)
class TestPairs:
    """The pairs of one test, and how it failed if it did: (status and reason) of either side."""

    __test__ = False

    test: str
    head_test: str
    device: str
    pairs: tuple[PairOfValues, ...]  # the units of evidence: one a round
    counts: tuple[PairOfValues, ...] = ()  # the exact channels of every pair of processes
    base_failure: str = ""
    head_failure: str = ""
    now_and_then: str = ""  # how a side failed in some of its processes only


@dataclass(frozen=True)
class PairSeries:
    """The pairs of one channel of one test, as logarithms."""

    test: str
    channel: str
    device: str
    rounds: tuple[int, ...]  # which of the test's pairs have the channel, by index
    base: tuple[float, ...]
    head: tuple[float, ...]
    probes: tuple[float, ...]  # host_log_ratio of each pair; empty if it is not the covariate
    slope: float
    probe_moved: bool  # the probe itself is slower on one side, so it is no measure of the host

    @property
    def name(self) -> tuple[str, str]:
        return self.test, self.channel

    @property
    def covariate(self) -> bool:
        return bool(self.probes)

    @property
    def void(self) -> bool:
        """The values themselves hold a probe that was slower on one side."""
        return self.probe_moved and self.channel in RESTS_ON_PROBE

    @property
    def plain(self) -> numpy.ndarray:
        sign = 1.0 if CHANNELS[self.channel].better == "lower" else -1.0
        return sign * (numpy.log(self.head) - numpy.log(self.base)) if self.base else numpy.empty(0)

    @property
    def log_ratios(self) -> numpy.ndarray:
        return adjusted_log_ratios(self.plain, self.probes, self.slope) if self.probes else self.plain


def pair_series(one: TestPairs, channel: str, noise: NoiseTable | None) -> PairSeries:
    """The pairs of a test that have a statistical channel. `noise` tells how it follows the host probe."""
    having = [
        index
        for index, pair in enumerate(one.pairs)
        if pair.base.get(channel, 0.0) > 0 and pair.head.get(channel, 0.0) > 0
    ]
    pairs = [one.pairs[index] for index in having]
    probed = (takes_covariate(channel) or channel in RESTS_ON_PROBE) and len(pairs) >= FEWEST_PROBES
    hosts = [host_log_ratio(pair.base, pair.head, one.device) for pair in pairs] if probed else []
    known = [ratio for ratio in hosts if ratio is not None]
    probes = known if len(known) == len(pairs) and any(known) else []
    moved = bool(probes) and differs_between_sides([log_ratio(pair.base[PROBE], pair.head[PROBE]) for pair in pairs])
    slope = noise.slope(channel) if noise else None
    return PairSeries(
        test=one.test,
        channel=channel,
        device=one.device,
        rounds=tuple(having),
        base=tuple(pair.base[channel] for pair in pairs),
        head=tuple(pair.head[channel] for pair in pairs),
        probes=tuple(probes) if takes_covariate(channel) and not moved else (),
        probe_moved=moved,
        slope=SLOPES[one.device] if slope is None else slope,
    )


def differs_between_sides(probes: Sequence[float], level: float = 0.95) -> bool:
    """Whether the probe runs slower on one side than on the other (two-sided t). A covariate must owe nothing to the
    side: threads of a test that spin on while the probe runs slow it, and to adjust by it would hide the build."""
    if not probes or numpy.ptp(probes) <= ROUNDING:
        return bool(probes) and abs(probes[0]) > ROUNDING
    error = float(numpy.std(probes, ddof=1)) / math.sqrt(len(probes))
    return abs(float(numpy.mean(probes))) > float(special.stdtrit(len(probes) - 1, (1 + level) / 2)) * error


def log_ratios(one: TestPairs, noise: NoiseTable | None = None) -> list[dict[str, float]]:
    """Of every pair ln(head / base) by channel, positive where head is slower: times as a comparison sees them, counts
    as they are (0 where they are equal). The host probe itself owes nothing to either side and is left out; where it
    was slower on one side, what rests on it is told by whichever says less, the time with the probe or without.

    For pairs of one process a side and round, whose counts belong to it. Raises ValueError for others.
    """
    found = [_counted(pair) for pair in one.counts] or [{} for _ in one.pairs]
    if len(found) != len(one.pairs):
        raise ValueError(f"{one.test}: {len(found)} pairs of processes in {len(one.pairs)} rounds")
    names = {name for pair in one.pairs for name in pair.base.keys() & pair.head.keys()} - {PROBE}
    for channel in (name for name, kind in CHANNELS.items() if name in names and not kind.exact):
        series = pair_series(one, channel, noise)
        ratios = _nearer_nothing(one, series, noise) if series.void else series.log_ratios
        for index, ratio in zip(series.rounds, ratios, strict=True):
            found[index][channel] = float(ratio)
    return found


def _nearer_nothing(one: TestPairs, series: PairSeries, noise: NoiseTable | None) -> numpy.ndarray:
    """Of a void series. What threads of one side do to the probe can only hide a change so, and make none."""
    raw = pair_series(one, RESTS_ON_PROBE[series.channel], noise)
    plain = dict(zip(raw.rounds, raw.plain, strict=True))
    both = [(ratio, plain.get(index, 0.0)) for index, ratio in zip(series.rounds, series.plain, strict=True)]
    return numpy.array([min(pair, key=abs) if pair[0] * pair[1] > 0 else 0.0 for pair in both])


def _counted(pair: PairOfValues) -> dict[str, float]:
    """Of the exact channels of two processes; a count that only one of them has as 0 is left out."""
    found = {}
    for channel in pair.base.keys() & pair.head.keys():
        base, head = pair.base[channel], pair.head[channel]
        if base == head:
            found[channel] = 0.0
        elif base > 0 and head > 0:
            found[channel] = log_ratio(base, head)
    return found
