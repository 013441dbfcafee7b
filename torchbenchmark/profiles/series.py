"""The profiles of pairs as series by name: what each operator, kernel and rest took on either side, pair by pair.

Host times are brought to the speed of host that both processes of a pair had in the middle, as what has not changed, or
the host probe, tells it; a rest makes the series of an account add up to the whole.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy
from numpy.typing import NDArray

from torchbenchmark.paired.host_speed import PROBE, SLOPES, host_log_ratio, log_ratio
from torchbenchmark.paired.pair_series import FEWEST_PROBES, differs_between_sides
from torchbenchmark.profiles.attribution import AccountName, Kind
from torchbenchmark.profiles.process_profile import OperatorUse, ProcessProfile

SMALLEST_SHARE = 0.002  # of an account's whole: what is smaller, and as often as before, is told with the others
FEWEST_NAMES = 4  # whose middle one tells how fast the host was
SURE_OF_ALL = 0.99  # that a build is slower all over: a host of chance that is taken for it makes many names differ
_FOLLOW_HOST: tuple[Kind, ...] = ("operator", "dispatch", "compiled")
PYTHON, WAITING, OTHERS, REMAINDER = (
    "Python, outside of operators",
    "waiting for the GPU",
    "others, each under 0.2 %",
    "remainder",
)
NO_OPERATOR = "(no operator)"
_AUTOGRAD = "autograd::engine::evaluate_function: "
_COMPILED = re.compile(
    r"TorchDynamo |Torch-Compiled Region|CompiledFunction|Pregraph bytecode|AOTDispatcher |## Call CompiledFxGraph"
)
_GRAPH_HASH = re.compile(r"(## Call CompiledFxGraph) \w+")


@dataclass(frozen=True)
class SideProfile:
    """One process of a pair: its profile, and the locations of its channels."""

    profile: ProcessProfile
    channels: Mapping[str, float]


@dataclass(frozen=True)
class ProfiledPair:
    base: SideProfile
    head: SideProfile

    @property
    def sides(self) -> tuple[SideProfile, SideProfile]:
        return self.base, self.head


@dataclass(frozen=True, eq=False)
class Series:
    """One name over the pairs: arrays of shape (pairs, 2), base and head; seconds and counts of one iteration."""

    name: str
    kind: Kind
    seconds: NDArray[numpy.float64]
    counts: NDArray[numpy.float64] | None = None
    parts: tuple["Series", ...] = ()  # the kernels of an operator
    scale: float = 0.0  # what a difference is a share of; 0: the mean of the series itself

    @property
    def size(self) -> float:
        return self.scale or float(self.seconds.mean())

    @property
    def count_changed(self) -> bool:
        """Exactly: the same in all processes of a side, and another on the other side."""
        if self.counts is None:
            return False
        base, head = self.counts.T
        return bool(numpy.ptp(base) == 0 and numpy.ptp(head) == 0 and base[0] != head[0])


@dataclass(frozen=True, eq=False)
class AccountSeries:
    name: AccountName
    whole: Series
    rows: tuple[Series, ...]


def accounts_of(pairs: Sequence[ProfiledPair], device: str) -> list[AccountSeries]:
    """The host's account and, on a GPU, that of the GPU before it; without one that holds no time on either side, as
    that of a GPU which launched nothing."""
    found = [_gpu_account(pairs)] if device == "cuda" else []
    return [account for account in (*found, _host_account(pairs, device)) if account.whole.size > 0]


def _gpu_account(pairs: Sequence[ProfiledPair]) -> AccountSeries:
    """Kernels and copies, by the operator that launched them. The whole is what the plain profiled section of the same
    processes measured, without the operators being recorded; that of the profile where there was none."""
    names: dict[str, dict[tuple[str, bool], NDArray[numpy.float64]]] = {}
    for number, side, one in _operators(pairs):
        for kernel in one.kernels:
            kernels = names.setdefault(operator_name(one.name), {})
            values = kernels.setdefault((kernel.name, kernel.is_copy), numpy.zeros((2, len(pairs), 2)))
            values[:, number, side] += (kernel.seconds, kernel.launches)
    rows = []
    for name, kernels in names.items():
        parts = tuple(
            Series(kernel, "copy" if is_copy else "kernel", values[0], values[1])
            for (kernel, is_copy), values in kernels.items()
        )
        total = numpy.sum(list(kernels.values()), axis=0)
        rows.append(Series(name, "kernel", total[0], total[1], parts))
    recorded = numpy.sum([row.seconds for row in rows], axis=0) if rows else numpy.zeros((len(pairs), 2))
    timed = _matrix(pairs, lambda side: side.channels.get("gpu_time", 0.0) + side.channels.get("gpu_copies", 0.0))
    whole = Series("GPU time", "kernel", timed if (timed > 0).all() else recorded)
    return _account("gpu", whole, rows)


def _host_account(pairs: Sequence[ProfiledPair], device: str) -> AccountSeries:
    """An iteration's latency: in operators, in Python, in waits; the rest is what the timed and the profiled iterations
    differ by, the profiler's own cost above all."""
    speed, of_latency = host_speed(pairs, device)
    host: dict[str, NDArray[numpy.float64]] = {}
    calls: dict[str, NDArray[numpy.float64]] = {}
    for number, side, one in _operators(pairs):
        name = operator_name(one.name)
        if not (one.calls or one.host_s):
            continue
        host.setdefault(name, numpy.zeros((len(pairs), 2)))[number, side] += one.host_s
        seen = calls.setdefault(name, numpy.zeros((len(pairs), 2)))
        seen[number, side] = max(seen[number, side], one.calls) if one.name.startswith(_AUTOGRAD) else one.calls
    rows = [Series(name, _kind(name, device), host[name], calls[name]) for name in host]
    rows.append(Series(PYTHON, "python", _matrix(pairs, lambda side: side.profile.outside_s)))
    by_names = speed_of_names(rows)
    speed = speed if by_names is None else by_names
    rows = [replace(row, seconds=row.seconds * speed) for row in rows]
    if device == "cuda":
        rows.append(Series(WAITING, "waiting", _matrix(pairs, lambda side: side.profile.waiting_s)))
    timed = _matrix(pairs, lambda side: side.channels.get("latency", 0.0)) * of_latency
    wall = numpy.sum([row.seconds for row in rows], axis=0)
    return _account("host", Series("latency", "operator", timed if (timed > 0).all() else wall), rows)


def _account(name: AccountName, whole: Series, rows: Sequence[Series]) -> AccountSeries:
    """With the small ones together, and what is left over as a row."""
    floor = SMALLEST_SHARE * whole.size
    small = [
        row for row in rows if row.size < floor and not row.count_changed and row.kind not in ("python", "waiting")
    ]
    kept = [row for row in rows if row not in small and row.size > 0]
    if small:
        kept.append(Series(OTHERS, "others", numpy.sum([row.seconds for row in small], axis=0)))
    told = numpy.sum([row.seconds for row in kept], axis=0) if kept else numpy.zeros_like(whole.seconds)
    kept.append(Series(REMAINDER, "remainder", whole.seconds - told, scale=whole.size))
    return AccountSeries(name, whole, tuple(row for row in kept if row.size > 0))


def speed_of_names(rows: Sequence[Series]) -> NDArray[numpy.float64] | None:
    """Factors of shape (pairs, 2) that bring both processes of a pair to one speed of host, as the middle one of the
    names tells that both sides have as often: what disturbs a process slows all that it does. None where too few tell,
    or the middle one differs between the sides: then it is the build that is slower all over, and not the host.
    """
    telling = [
        row
        for row in rows
        if (row.seconds > 0).all() and row.counts is not None and not row.count_changed and row.kind in _FOLLOW_HOST
    ]
    total = sum(row.size for row in rows)
    telling = [row for row in telling if row.size >= SMALLEST_SHARE * total]
    if len(telling) < FEWEST_NAMES or len(telling[0].seconds) < FEWEST_PROBES:
        return None
    ratios = numpy.array([numpy.log(row.seconds[:, 1]) - numpy.log(row.seconds[:, 0]) for row in telling])
    middle = numpy.median(ratios, axis=0).tolist()
    return None if differs_between_sides(middle, SURE_OF_ALL) else _factors(middle, 1.0)


def host_speed(pairs: Sequence[ProfiledPair], device: str) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Factors of shape (pairs, 2) for what the host did while it was profiled, and for the latency of the timed
    section, as the host probe tells; ones where it cannot, or is itself slower on one side."""
    plain = numpy.ones((len(pairs), 2))
    channels = [(pair.base.channels, pair.head.channels) for pair in pairs]
    if len(pairs) < FEWEST_PROBES or any(side.get(PROBE, 0.0) <= 0 for both in channels for side in both):
        return plain, plain
    timed = [log_ratio(base[PROBE], head[PROBE]) for base, head in channels]
    probes = [[side.profile.probe_s or 0.0 for side in pair.sides] for pair in pairs]
    profiled = [log_ratio(base, head) for base, head in probes] if min(map(min, probes)) > 0 else timed
    if differs_between_sides(timed) or differs_between_sides(profiled):
        return plain, plain
    latency = [host_log_ratio(base, head, device) or 0.0 for base, head in channels]
    return _factors(profiled, SLOPES[device]), _factors(latency, SLOPES[device])


def _factors(log_ratios: Sequence[float], slope: float) -> NDArray[numpy.float64]:
    half = numpy.exp(0.5 * slope * numpy.array(log_ratios))
    return numpy.column_stack([half, 1 / half])


def operator_name(name: str) -> str:
    """One name for an operator and for the engine's call of it; compiled graphs without the hash of their code."""
    return _GRAPH_HASH.sub(r"\1", name.removeprefix(_AUTOGRAD)) or NO_OPERATOR


def _kind(name: str, device: str) -> Kind:
    if _COMPILED.match(name):
        return "compiled"
    return "dispatch" if device == "cuda" else "operator"


def _operators(pairs: Sequence[ProfiledPair]) -> Iterable[tuple[int, int, OperatorUse]]:
    """(pair, 0 for base or 1 for head, operator)."""
    for number, pair in enumerate(pairs):
        for side, one in enumerate(pair.sides):
            for operator in one.profile.operators:
                yield number, side, operator


def _matrix(pairs: Sequence[ProfiledPair], value: Callable[[SideProfile], float]) -> NDArray[numpy.float64]:
    return numpy.array([[value(side) for side in pair.sides] for pair in pairs], dtype=numpy.float64)
