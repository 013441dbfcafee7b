"""The A/A study in numbers: pairs of one build against itself give the rows of the noise table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from torchbenchmark.channels import CHANNELS
from torchbenchmark.paired.host_speed import SLOPES, STEEPEST, host_log_ratio, log_ratio, takes_covariate
from torchbenchmark.paired.noise_table import MOST_DEGREES, ChannelNoise, NotExact, SeriesNoise
from torchbenchmark.paired.values import ProcessValues
from torchbenchmark.statistics.covariate import fitted_slope
from torchbenchmark.statistics.moderated_variance import FEWEST_SERIES_TO_REFIT, fit_variance_prior
from torchbenchmark.statistics.variance_components import variance_components

MARGIN_QUANTILE = 0.95


@dataclass(frozen=True)
class AaPair:
    """One pair of the study: the same test of the same build, from two zygotes."""

    test: str
    round: int
    index: int  # of the processes of the test in this round
    one: ProcessValues
    other: ProcessValues


@dataclass(frozen=True)
class NoiseRows:
    series: tuple[SeriesNoise, ...]
    channels: tuple[ChannelNoise, ...]
    not_exact: tuple[NotExact, ...]


def noise_of(pairs: Sequence[AaPair], device: str) -> NoiseRows:
    """The rows of the noise table, of the study of a device: cpu or cuda.

    A channel of which no test has two rounds is left out, as is one that never varies.
    """
    names = {name for pair in pairs for name in pair.one.locations}
    series: list[SeriesNoise] = []
    channels: list[ChannelNoise] = []
    for channel in (name for name in CHANNELS if name in names and not CHANNELS[name].exact):
        host = _Host(device, _slope(channel, pairs, device))
        rows = [row for test in _tests(pairs) if (row := _series(test, channel, pairs, host)) is not None]
        if any(row.pair_sd > 0 for row in rows):
            series += rows
            channels.append(_channel(channel, rows, pairs, host))
    return NoiseRows(tuple(series), tuple(channels), tuple(_not_exact(pairs)))


def _tests(pairs: Sequence[AaPair]) -> list[str]:
    return sorted({pair.test for pair in pairs})


def _measured(channel: str, pairs: Sequence[AaPair], test: str | None = None) -> list[AaPair]:
    return [
        pair
        for pair in pairs
        if test in (None, pair.test)
        and min(pair.one.locations.get(channel, 0), pair.other.locations.get(channel, 0)) > 0
    ]


@dataclass(frozen=True)
class _Host:
    """How a channel follows the probe on a device; no slope: it does not."""

    device: str
    slope: float | None


def _log_ratio(channel: str, pair: AaPair, host: _Host) -> float:
    ratio = log_ratio(pair.other.locations[channel], pair.one.locations[channel])
    moved = host_log_ratio(pair.other.locations, pair.one.locations, host.device)
    return ratio if host.slope is None or moved is None else ratio - host.slope * moved


def _slope(channel: str, pairs: Sequence[AaPair], device: str) -> float | None:
    """Of all tests together, each pair as far as it follows the host."""
    if not takes_covariate(channel):
        return None
    alone = _Host(device, None)
    both = [
        (_log_ratio(channel, pair, alone), moved)
        for pair in _measured(channel, pairs)
        if (moved := host_log_ratio(pair.other.locations, pair.one.locations, device)) is not None
    ]
    if not both:
        return None
    ratios, hosts = zip(*both, strict=True)
    return fitted_slope(ratios, hosts, SLOPES[device], STEEPEST[device])


def _series(test: str, channel: str, pairs: Sequence[AaPair], host: _Host) -> SeriesNoise | None:
    mine = _measured(channel, pairs, test)
    rounds = {pair.round for pair in mine}
    if len(rounds) < 2:
        return None
    variances = []
    for index in sorted({pair.index for pair in mine}):
        ratios = [_log_ratio(channel, pair, host) for pair in mine if pair.index == index]
        if len(ratios) >= 2:
            variances.append(numpy.var(ratios, ddof=1))
    if not variances:
        return None
    processes = [
        (f"{process.zygote}", f"{process.zygote}/{pair.index}", process)
        for pair in mine
        for process in (pair.one, pair.other)
    ]
    locations = [math.log(process.locations[channel]) for _, _, process in processes]
    levels = _levels(channel, processes)
    return SeriesNoise(
        test=test,
        channel=channel,
        pairs=len(rounds),
        pair_sd=float(math.sqrt(numpy.mean(variances))),
        spread=float(numpy.std(locations, ddof=1)),
        sd_zygote=levels[0],
        sd_process=levels[1],
        sd_iteration=levels[2],
    )


def _levels(channel: str, processes: Sequence[tuple[str, str, ProcessValues]]) -> tuple[float | None, ...]:
    """Standard deviations that zygote, process and iteration add, of the logarithms of the samples."""
    rows = [
        (math.log(sample), zygote, name)
        for zygote, name, process in processes
        for sample in process.samples[channel]
        if sample > 0
    ]
    if len({zygote for _, zygote, _ in rows}) < 2:
        return None, None, None
    values, zygotes, names = zip(*rows, strict=True)
    found = variance_components(values, zygotes, names, resamples=100)
    return tuple(
        None if component is None else math.sqrt(component.variance)
        for component in (found.zygote, found.process, found.iteration)
    )


def _channel(channel: str, rows: Sequence[SeriesNoise], pairs: Sequence[AaPair], host: _Host) -> ChannelNoise:
    variances = [row.pair_sd**2 for row in rows]
    degrees = [row.pairs - 1 for row in rows]
    if len(rows) >= FEWEST_SERIES_TO_REFIT and numpy.median(variances) > 0:
        scale, weight = fit_variance_prior(variances, degrees)
    else:
        scale, weight = float(numpy.mean(variances)), 0.0
    by_round: dict[tuple[str, int], list[float]] = {}
    for pair in _measured(channel, pairs):
        by_round.setdefault((pair.test, pair.round), []).append(_log_ratio(channel, pair, host))
    differences = [abs(float(numpy.mean(ratios))) for ratios in by_round.values()]
    return ChannelNoise(
        channel=channel,
        tests=len(rows),
        pair_sd=math.sqrt(scale),
        degrees=min(weight, MOST_DEGREES),
        margin=float(numpy.quantile(differences, MARGIN_QUANTILE)),
        slope=host.slope,
    )


def _not_exact(pairs: Sequence[AaPair]) -> list[NotExact]:
    found = []
    for test in _tests(pairs):
        processes = [process for pair in pairs if pair.test == test for process in (pair.one, pair.other)]
        for channel in (name for name, kind in CHANNELS.items() if kind.exact):
            values = sorted({process.locations[channel] for process in processes if channel in process.locations})
            if len(values) > 1:
                found.append(NotExact(test=test, channel=channel, values=tuple(values)))
    return found
