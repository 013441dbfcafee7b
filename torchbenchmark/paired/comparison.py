"""From pairs to verdicts: per test and channel the effect, its interval, and what that comes to.

Pure: it knows nothing of how the pairs were measured. An effect is ln(head / base) over the pairs, positive where head
is slower. All intervals of one comparison hold together with `level`: moderated Student t from few pairs, max-t
bootstrap from twelve on (torchbenchmark/statistics). Counts are compared exactly.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy
from pydantic import BaseModel, ConfigDict

from torchbenchmark.channels import CHANNELS
from torchbenchmark.paired.host_speed import PROBE
from torchbenchmark.paired.noise_table import NoiseTable
from torchbenchmark.paired.pair_series import ROUNDING, PairSeries, TestPairs, pair_series
from torchbenchmark.quantity import counted
from torchbenchmark.statistics.interval import Interval
from torchbenchmark.statistics.moderated_variance import VariancePrior
from torchbenchmark.statistics.pairs_needed import pairs_needed
from torchbenchmark.statistics.simultaneous import can_bootstrap, max_t_intervals, moderated_intervals

LEVEL = 0.99  # of all intervals of a comparison together: a comment is wrong once in a hundred
JUDGED = {"cuda": ("gpu_time", "latency"), "cpu": ("cpu_time", "latency")}
# What "no change" means unless a person says otherwise: a kernel time tells small changes, a wall clock does not.
NO_CHANGE_BEYOND = {"gpu": 0.01, "cpu": 0.05}
NO_TABLE = "none: no A/A table of this class, each series stands for itself (`torchbench doctor --aa` makes the table)"
_SAMPLES_FOR_999 = 10_000
LARGEST_SHARE = 1e9  # of a bound: two pairs of forty tests leave one without a bound that a number can hold

EffectVerdict = Literal["slower", "faster", "no change", "inconclusive", "not measured"]
CountVerdict = Literal["same", "changed", "not exact"]
TestVerdict = Literal["ok", "newly failing", "fixed", "failing", "not measured", "left out"]
Verdict = Literal["slower", "newly failing", "faster", "no change", "inconclusive", "not measured"]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Effect(_Schema):
    """One statistical channel of one test. Shares are of base: .01 is 1 % slower."""

    test: str
    channel: str
    unit: str
    verdict: EffectVerdict
    pairs: int
    base: float | None = None  # median over the processes
    head: float | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    beyond: float  # "no change" means none beyond this share
    needs: int | None = None  # more pairs, until it is one or the other; None if it is, or none would do
    adjusted_by: str = ""  # the covariate
    unadjusted: tuple[float, float, float] | None = None  # effect, low and high without it
    reason: str = ""


class Count(_Schema):
    """One exact channel of one test."""

    test: str
    channel: str
    verdict: CountVerdict
    base: tuple[float, ...]  # every value that was seen
    head: tuple[float, ...]


class TestOutcome(_Schema):
    """How a test ended on both sides."""

    __test__ = False  # not a class of tests, whatever pytest thinks of its name

    test: str
    head_test: str  # its id on the other side, where an override makes it another
    verdict: TestVerdict
    pairs: int
    reason: str = ""


class Comparison(_Schema):
    """All that a comparison of two sides found."""

    verdict: Verdict
    level: float
    family: int  # intervals that hold together
    method: str
    prior: str  # where the variances were shrunk to
    tests: tuple[TestOutcome, ...]
    effects: tuple[Effect, ...]
    counts: tuple[Count, ...]

    def of_test(self, test: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.test == test]


@dataclass(frozen=True)
class Criterion:
    """How sure, and what counts as no change."""

    level: float = LEVEL
    beyond: float | None = None  # None: by the side of the channel
    channels: tuple[str, ...] = ()  # judged statistically; empty: those of the device
    family: int = 0  # series that are judged in all, where not all of them are in one call; 0: those that are
    bootstrap_seed: int = 0

    def judged(self, device: str) -> tuple[str, ...]:
        return self.channels or JUDGED[device]

    def no_change_beyond(self, channel: str) -> float:
        return self.beyond if self.beyond is not None else NO_CHANGE_BEYOND[CHANNELS[channel].side]


def compare(tests: Sequence[TestPairs], criterion: Criterion, noise: NoiseTable | None = None) -> Comparison:
    """The verdicts of all tests together. `noise` is the A/A table of this class, if there is one."""
    series = [pair_series(one, channel, noise) for one in tests for channel in _channels(one, criterion)]
    judged = [one for one in series if len(one.log_ratios) >= 2 and not one.void]
    intervals = _intervals(judged, criterion, noise)
    adjusted = [one.name for one in judged if one.covariate]
    plain = _intervals(judged, criterion, noise, adjusted=False) if adjusted else {}  # of all: it is one family
    plain = {name: plain[name] for name in adjusted if name in plain}
    effects = [_effect(one, intervals.get(one.name), plain.get(one.name), criterion, noise) for one in series]
    family = max(criterion.family, len(judged))
    method = _method(_bootstrapped(judged, criterion))
    return assemble(tests, effects, level=criterion.level, family=family, method=method, noise=noise)


def assemble(
    tests: Sequence[TestPairs],
    effects: Sequence[Effect],
    *,
    level: float,
    family: int,
    method: str,
    noise: NoiseTable | None,
) -> Comparison:
    """The comparison of these effects, with how the tests ended and with their counts, which need no interval."""
    outcomes = [_outcome(one) for one in tests]
    return Comparison(
        verdict=_verdict(outcomes, effects),
        level=level,
        family=family,
        method=method,
        prior=_prior_in_words(effects, noise),
        tests=tuple(outcomes),
        effects=tuple(effects),
        counts=tuple(count for one in tests for count in _counts(one)),
    )


def _channels(one: TestPairs, criterion: Criterion) -> tuple[str, ...]:
    return tuple(channel for channel in criterion.judged(one.device) if not CHANNELS[channel].exact)


def _intervals(
    series: Sequence[PairSeries], criterion: Criterion, noise: NoiseTable | None, *, adjusted: bool = True
) -> dict[tuple[str, str], Interval]:
    """The interval of each series; those with as many pairs are one table. Series that do not vary have none."""
    found: dict[tuple[str, str], Interval] = {}
    varying = [one for one in series if numpy.ptp(one.log_ratios if adjusted else one.plain) > ROUNDING]
    family = max(criterion.family, len(series))
    if _bootstrapped(series, criterion, adjusted=adjusted):
        table = numpy.column_stack([one.log_ratios if adjusted else one.plain for one in series])
        resamples = max(_SAMPLES_FOR_999, math.ceil(20 / (1 - criterion.level)))
        intervals = max_t_intervals(table, criterion.level, resamples=resamples, seed=criterion.bootstrap_seed)
        return dict(zip([one.name for one in series], intervals, strict=True))
    for pairs in sorted({len(one.plain) for one in varying}):
        group = [one for one in varying if len(one.plain) == pairs]
        table = numpy.column_stack([one.log_ratios if adjusted else one.plain for one in group])
        for channel in sorted({one.channel for one in group}):
            columns = [index for index, one in enumerate(group) if one.channel == channel]
            prior = _prior([group[index] for index in columns], noise)
            intervals = moderated_intervals(table[:, columns], prior, criterion.level, family=family)
            found |= dict(zip([group[index].name for index in columns], intervals, strict=True))
    return found


def _bootstrapped(series: Sequence[PairSeries], criterion: Criterion, *, adjusted: bool = True) -> bool:
    """Whether the intervals are a bootstrap: of the whole family, which must have pairs enough and one number of
    them."""
    if len(series) < max(1, criterion.family) or len({len(one.plain) for one in series}) != 1:
        return False
    table = numpy.column_stack([one.log_ratios if adjusted else one.plain for one in series])
    return bool((numpy.ptp(table, axis=0) > ROUNDING).all()) and can_bootstrap(table, criterion.level)


def _prior(series: Sequence[PairSeries], noise: NoiseTable | None) -> VariancePrior | None:
    if noise is None:
        return None
    known = [noise.pair_variance(one.test, one.channel) for one in series]
    if any(one is None or one.degrees <= 0 for one in known):
        return None
    return VariancePrior(
        numpy.array([one.variance for one in known if one]), numpy.array([one.degrees for one in known if one])
    )


def _prior_in_words(effects: Sequence[Effect], noise: NoiseTable | None) -> str:
    """Which table; and the channels for which it does not serve, as it has none of the variance of a test."""
    if noise is None:
        return NO_TABLE
    missing = {
        effect.channel: effect.test
        for effect in effects
        if (known := noise.pair_variance(effect.test, effect.channel)) is None or known.degrees <= 0
    }
    told = (f"not for {channel}, of which it does not know {test}" for channel, test in sorted(missing.items()))
    return "; ".join([noise.title, *told])


def _effect(
    one: PairSeries, interval: Interval | None, plain: Interval | None, criterion: Criterion, noise: NoiseTable | None
) -> Effect:
    beyond = criterion.no_change_beyond(one.channel)
    effect = Effect(
        test=one.test,
        channel=one.channel,
        unit=CHANNELS[one.channel].unit,
        verdict="not measured",
        pairs=len(one.base),
        base=statistics.median(one.base) if one.base else None,
        head=statistics.median(one.head) if one.head else None,
        beyond=beyond,
    )
    if one.void:
        return effect.model_copy(
            update={"reason": f"the host probe differs between the sides, and {one.channel} rests on it"}
        )
    if interval is None:
        if len(one.base) >= 2:
            return effect.model_copy(update=_constant(one, beyond))
        return effect.model_copy(
            update={"reason": f"{counted(len(one.base), 'pair')} with {one.channel}; at least 2 are needed"}
        )
    verdict = _judge(interval, beyond)
    return effect.model_copy(
        update={
            "verdict": verdict,
            **_shares(interval),
            "needs": _needs(interval, one, beyond, noise) if verdict == "inconclusive" else None,
            "adjusted_by": PROBE if one.covariate else "",
            "reason": "the host probe differs between the sides, so it adjusts nothing" if one.probe_moved else "",
            "unadjusted": tuple(_shares(plain).values()) if plain else None,
        }
    )


def _constant(one: PairSeries, beyond: float) -> dict[str, object]:
    """Every pair gave the same ratio: there is no noise to judge it by."""
    share = _share(float(one.log_ratios[0]))
    verdict = "no change" if abs(share) <= beyond else "slower" if share > 0 else "faster"
    return {"verdict": verdict, "effect": share, "low": share, "high": share, "reason": "the same ratio in every pair"}


def _judge(interval: Interval, beyond: float) -> EffectVerdict:
    if interval.low > 0:
        return "slower"
    if interval.high < 0:
        return "faster"
    inside = interval.high <= math.log1p(beyond) and interval.low >= -math.log1p(beyond)
    return "no change" if inside else "inconclusive"


def _needs(interval: Interval, one: PairSeries, beyond: float, noise: NoiseTable | None) -> int | None:
    """How many more pairs until the interval excludes 0, or lies within `beyond`, if estimate and variance stay."""
    target = max(abs(interval.estimate), math.log1p(beyond) - abs(interval.estimate))
    known = noise.pair_variance(one.test, one.channel) if noise else None
    degrees = len(one.base) - 1
    variance, prior_degrees = float(numpy.var(one.log_ratios, ddof=1)), 0.0
    if known is not None:
        prior_degrees = known.degrees
        variance = (prior_degrees * known.variance + degrees * variance) / (prior_degrees + degrees)
    return pairs_needed(variance, len(one.base), target, interval.level, prior_degrees=prior_degrees)


def _shares(interval: Interval) -> dict[str, float]:
    return {
        "effect": _share(interval.estimate),
        "low": _share(interval.low),
        "high": _share(interval.high),
    }


def _share(log_ratio: float) -> float:
    return math.expm1(min(log_ratio, math.log1p(LARGEST_SHARE)))


def _counts(one: TestPairs) -> Iterable[Count]:
    names = {name for pair in one.counts for name in (*pair.base, *pair.head)}
    for channel in (name for name in CHANNELS if name in names and CHANNELS[name].exact and CHANNELS[name].judged):
        base = tuple(sorted({pair.base[channel] for pair in one.counts if channel in pair.base}))
        head = tuple(sorted({pair.head[channel] for pair in one.counts if channel in pair.head}))
        if not base or not head:
            continue
        exact = len(base) == len(head) == 1
        verdict: CountVerdict = "not exact" if not exact else "same" if base == head else "changed"
        yield Count(test=one.test, channel=channel, verdict=verdict, base=base, head=head)


def _outcome(one: TestPairs) -> TestOutcome:
    verdict: TestVerdict = "ok"
    if one.base_failure and one.head_failure:
        verdict = "failing"
    elif one.head_failure:
        verdict = "newly failing"
    elif one.base_failure:
        verdict = "fixed"
    elif not one.pairs:
        verdict = "not measured"
    reasons = {"base": one.base_failure, "head": one.head_failure}
    return TestOutcome(
        test=one.test,
        head_test=one.head_test,
        verdict=verdict,
        pairs=len(one.pairs),
        reason="; ".join(
            filter(None, [*(f"{side}: {reason}" for side, reason in reasons.items() if reason), one.now_and_then])
        ),
    )


def _verdict(outcomes: Sequence[TestOutcome], effects: Sequence[Effect]) -> Verdict:
    """The worst that was found. `inconclusive` also if a single channel is: the others are told beside it."""
    found = {effect.verdict for effect in effects}
    if any(outcome.verdict == "newly failing" for outcome in outcomes):
        return "newly failing"
    for verdict in ("slower", "faster", "inconclusive", "no change"):
        if verdict in found:
            return verdict
    return "not measured"


def _method(bootstrapped: bool) -> str:
    if bootstrapped:
        return "max-t bootstrap over all series"
    return "Student t of the pairs, at the Sidak level of all series"
