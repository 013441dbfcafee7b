"""From profiled pairs to what got slower: the difference by operator and by kernel, each with its interval.

Pure. The unit of evidence is the pair. The names of an account, as logarithms of the ratio head / base, are series of
one family: their variances are shrunk towards each other (Smyth 2004), and all intervals of a comparison hold together
with `level` (Sidak). Counts that are the same in all processes of a side are compared exactly.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy
from scipy import special

from torchbenchmark.channels import CHANNELS
from torchbenchmark.paired.pairs_file import PairedTest, Pairs
from torchbenchmark.paired.results import measured_tests
from torchbenchmark.paired.values import values_of
from torchbenchmark.profiles.attribution import (
    CPU_SIDE,
    Account,
    Attribution,
    CountChange,
    Row,
    TestAttribution,
    Verdict,
)
from torchbenchmark.profiles.process_profile import ProfiledProcess
from torchbenchmark.profiles.series import AccountSeries, ProfiledPair, Series, SideProfile, accounts_of
from torchbenchmark.records import Status
from torchbenchmark.statistics.interval import Interval
from torchbenchmark.statistics.moderated_variance import (
    FEWEST_SERIES_TO_REFIT,
    Moderated,
    VariancePrior,
    cautious_weight,
    fit_variance_prior,
    moderate,
)
from torchbenchmark.statistics.simultaneous import (
    degrees_after_refit,
    effective_series,
    sample_variances,
    sidak_level,
)

LEVEL = 0.99
FEWEST_PAIRS = 2
_ROUNDING = 1e-12
_NAMES = ("kernel", "copy", *CPU_SIDE)
_HIGHEST = math.log(1e6)  # of a ratio: two pairs of many names leave one without a bound that means something
_MOST_SIZES = 1e9  # that a rest may be of its whole: beyond that one of the two is not what it says

Touched = Callable[[Sequence[str]], Mapping[str, tuple[str, ...]]]  # operators -> the touched paths of each


@dataclass(frozen=True)
class TestProfiles:
    """The profiled pairs of one test."""

    __test__ = False

    test: str
    head_test: str
    device: str
    pairs: tuple[ProfiledPair, ...]
    reason: str = ""


def attribute_pairs(pairs: Pairs, level: float = LEVEL, touched: Touched | None = None) -> Attribution:
    """What inside each test changed, of a profiled comparison as it was measured: what `profile`, confirming, bisection
    and `/benchmark` call."""
    return attribute([_profiles_of(pairs, test) for test in measured_tests(pairs)], level, touched)


def attribute(tests: Sequence[TestProfiles], level: float = LEVEL, touched: Touched | None = None) -> Attribution:
    """What inside each test changed. All intervals by name together hold with `level`, and so do
    those of the wholes among themselves: they say whether there is a change to explain."""
    accounts = {one.test: accounts_of(one.pairs, one.device) if len(one.pairs) >= FEWEST_PAIRS else [] for one in tests}
    family = sum(len(_series(account)) for several in accounts.values() for account in several)
    wholes = sum(map(len, accounts.values()))
    return Attribution(
        level=level,
        family=family,
        tests=tuple(_test(one, accounts[one.test], level, max(1, family), max(1, wholes), touched) for one in tests),
    )


def _test(
    one: TestProfiles,
    accounts: Sequence[AccountSeries],
    level: float,
    family: int,
    wholes: int,
    touched: Touched | None,
) -> TestAttribution:
    judged = [_judge(account, level, family, wholes, touched) for account in accounts]
    judged.sort(key=lambda account: -account.weight())  # stable: the GPU's first where nothing is told
    reason = one.reason
    if len(one.pairs) < FEWEST_PAIRS:
        reason = f"{len(one.pairs)} profiled pairs, {FEWEST_PAIRS} are needed{f'; {reason}' if reason else ''}"
    return TestAttribution(
        test=one.test,
        head_test=one.head_test,
        device=one.device,
        pairs=len(one.pairs),
        accounts=tuple(judged),
        counts=tuple(_counts(one.pairs)),
        reason=reason,
    )


def _series(account: AccountSeries) -> list[Series]:
    """All that is judged by name: the rows, and the kernels of those rows that have several."""
    return [*account.rows, *(part for row in account.rows if len(row.parts) > 1 for part in row.parts)]


def _judge(account: AccountSeries, level: float, family: int, wholes: int, touched: Touched | None) -> Account:
    series = _series(account)
    intervals = dict(zip(map(id, series), _intervals(series, level, family), strict=True))
    (whole,) = _intervals([account.whole], level, wholes)
    decided = whole.low > 0 or whole.high < 0
    paths = (
        dict(touched([row.name for row in account.rows if row.kind in ("kernel", "operator", "dispatch")]))
        if touched
        else {}
    )

    def row_of(one: Series, interval: Interval, kernels: tuple[Row, ...] = (), *, launches: bool = False) -> Row:
        change = _mean_change(one)
        return Row(
            name=one.name,
            kind=one.kind,
            base=float(one.seconds[:, 0].mean()),
            head=float(one.seconds[:, 1].mean()),
            change=change,
            low=interval.low,
            high=interval.high,
            share=change / _mean_change(account.whole) if decided else None,
            base_count=None if one.counts is None else float(numpy.median(one.counts[:, 0])),
            head_count=None if one.counts is None else float(numpy.median(one.counts[:, 1])),
            verdicts=_verdicts(one, interval, "launched" if launches else "called"),
            kernels=kernels,
            touched=paths.get(one.name, ()),
        )

    gpu = account.name == "gpu"
    rows = []
    for one in account.rows:
        interval = intervals[id(one)]
        kernels = [row_of(part, intervals.get(id(part), interval), launches=True) for part in one.parts]
        kernels.sort(key=lambda row: -abs(row.change))
        rows.append(row_of(one, interval, tuple(kernels), launches=gpu))
    direction = 1.0 if _mean_change(account.whole) >= 0 else -1.0
    rows.sort(
        key=lambda row: (
            row.kind == "remainder",
            row.kind == "others",
            not row.found,
            -direction * row.change if decided else -abs(row.change),
        )
    )
    return Account(
        name=account.name,
        base=float(account.whole.seconds[:, 0].mean()),
        head=float(account.whole.seconds[:, 1].mean()),
        change=_mean_change(account.whole),
        low=whole.low,
        high=whole.high,
        decided=decided,
        rows=tuple(rows),
    )


def _intervals(series: Sequence[Series], level: float, family: int) -> list[Interval]:
    """Of the change in seconds, one a series: of the ratio head / base, times what base takes, as noise is a share of
    what it disturbs; of the plain difference where one side has nothing, or a rest may be negative. What differs by the
    same in all pairs has no spread to judge it by."""
    ratios = [bool((one.seconds > 0).all()) and one.kind != "remainder" for one in series]
    columns = [
        numpy.log(one.seconds[:, 1]) - numpy.log(one.seconds[:, 0]) if ratio else _difference_in_sizes(one)
        for one, ratio in zip(series, ratios, strict=True)
    ]
    table = numpy.column_stack(columns)
    varying = numpy.ptp(table, axis=0) > _ROUNDING
    found = [Interval(_mean_change(one), _mean_change(one), _mean_change(one), level) for one in series]
    if not varying.any():
        return found
    # Names have noise of one kind. The whole, waits and the remainder have not, and stand for themselves.
    names = numpy.array([ratio and one.kind in _NAMES for one, ratio in zip(series, ratios, strict=True)])
    judged = table[:, varying]
    moderated = _moderated(judged, names[varying])
    each = sidak_level(level, family)
    half_widths = special.stdtrit(moderated.degrees, (1 + each) / 2) * numpy.sqrt(moderated.variance / len(judged))
    for position, half_width in zip(numpy.flatnonzero(varying), half_widths, strict=True):
        one, middle = series[position], float(columns[position].mean())
        low, high = middle - float(half_width), middle + float(half_width)
        if ratios[position]:
            base = float(numpy.exp(numpy.log(one.seconds[:, 0]).mean()))
            low, high = (base * math.expm1(min(bound, _HIGHEST)) for bound in (low, high))
        else:
            low, high = one.size * low, one.size * high
        found[position] = Interval(_mean_change(one), low, high, each)
    return found


def _difference_in_sizes(one: Series) -> numpy.ndarray:
    """Of a series that took no time on either side, nothing."""
    with numpy.errstate(over="ignore"):
        return numpy.clip((one.seconds[:, 1] - one.seconds[:, 0]) / (one.size or 1.0), -_MOST_SIZES, _MOST_SIZES)


def _moderated(table: numpy.ndarray, names: numpy.ndarray) -> Moderated:
    """The variances of a table of shape (pairs, series), shrunk towards what those marked as `names` have in common,
    with a weight as low as it may well be; the degrees of freedom are fewer, as the same pairs tell of that."""
    own = len(table) - 1
    variances = sample_variances(table)
    alone = moderate(variances, own, None)
    if numpy.count_nonzero(names) < FEWEST_SERIES_TO_REFIT:
        return alone
    told = variances[names]
    weight = cautious_weight(told, own)
    if weight <= 0:
        return alone
    centre, _ = fit_variance_prior(told, own)
    moderated = moderate(variances, own, VariancePrior(numpy.full(len(variances), centre), weight))
    degrees = degrees_after_refit(moderated.degrees, own, effective_series(table[:, names]))
    return Moderated(
        numpy.where(names, moderated.variance, alone.variance),
        numpy.where(names, numpy.maximum(degrees, own), alone.degrees),
    )


def _verdicts(one: Series, interval: Interval, verb: str) -> tuple[Verdict, ...]:
    base, head = (one.counts if one.counts is not None else one.seconds).T
    if not base.any() and head.all():
        return ("appeared",)
    if base.all() and not head.any():
        return ("vanished",)
    found: list[Verdict] = []
    if one.count_changed:
        found.append(f"{verb} {'more' if head[0] > base[0] else 'less'} often")  # type: ignore[arg-type]
    if interval.low > 0:
        found.append("slower")
    elif interval.high < 0:
        found.append("faster")
    return tuple(found)


def _mean_change(one: Series) -> float:
    return float((one.seconds[:, 1] - one.seconds[:, 0]).mean())


def _counts(pairs: Sequence[ProfiledPair]) -> list[CountChange]:
    """The exact channels that are another on either side, and the same in all processes of a side."""
    seen: dict[str, tuple[set[float], set[float]]] = defaultdict(lambda: (set(), set()))
    for pair in pairs:
        for side, one in enumerate(pair.sides):
            for channel, value in one.channels.items():
                if channel in CHANNELS and CHANNELS[channel].exact and CHANNELS[channel].judged:
                    seen[channel][side].add(value)
    return [
        CountChange(channel=channel, base=min(base), head=min(head))
        for channel, (base, head) in seen.items()
        if len(base) == len(head) == 1 and base != head
    ]


def _profiles_of(pairs: Pairs, test: PairedTest) -> TestProfiles:
    found, reasons = [], []
    for pair in pairs.of_test(test.base):
        sides = [one for one in (pair.base, pair.head) if isinstance(one, ProfiledProcess) and one.status is Status.OK]
        if len(sides) == 2:
            base, head = (SideProfile(one.profile, values_of(one).locations) for one in sides)
            found.append(ProfiledPair(base, head))
            continue
        for name, process in (("base", pair.base), ("head", pair.head)):
            if process is None or isinstance(process, ProfiledProcess):
                continue
            notes = [note for note in process.notes if note.startswith("operator profile")]
            reasons.append(f"{name}: {process.reason or next(iter(notes), 'no profile')}")
    return TestProfiles(test.base, test.head, pairs.header.device, tuple(found), "; ".join(dict.fromkeys(reasons)))
