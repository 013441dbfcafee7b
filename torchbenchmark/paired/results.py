"""From a file of pairs to its verdicts: the one function that `ab`, confirmation, bisection and `/benchmark` call."""

import math
from collections.abc import Sequence
from statistics import geometric_mean

from torchbenchmark.channels import CHANNELS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.comparison import Comparison, Criterion, TestOutcome, compare
from torchbenchmark.paired.noise import AaPair, noise_of
from torchbenchmark.paired.noise_table import NoiseTable
from torchbenchmark.paired.pair_series import PairOfValues, TestPairs
from torchbenchmark.paired.pairs_file import Pair, PairedTest, Pairs
from torchbenchmark.paired.values import values_of
from torchbenchmark.records import Process, Status

SURELY_APART = 0.05
FAILURES_TO_BELIEVE = 3  # of fresh processes: a crash that happened once may be the machine's


def judge_pairs(pairs: Pairs, criterion: Criterion, noise: NoiseTable | None = None) -> Comparison:
    """The verdicts of what was measured, all tests together."""
    compared = compare([collapse(pairs, test) for test in measured_tests(pairs)], criterion, noise)
    return with_left_out(compared, pairs)


def with_left_out(comparison: Comparison, pairs: Pairs) -> Comparison:
    """With the tests that were planned and not measured: one that a side cannot run is no test without a change."""
    left_out = tuple(
        TestOutcome(test=test.base, head_test=test.head, verdict="left out", pairs=0, reason=test.left_out)
        for test in pairs.header.tests
        if test.left_out
    )
    return comparison.model_copy(update={"tests": (*comparison.tests, *left_out)})


def measured_tests(pairs: Pairs) -> list[PairedTest]:
    return [test for test in pairs.header.tests if not test.left_out]


def collapse(pairs: Pairs, test: PairedTest) -> TestPairs:
    """The pairs of a test in which both sides ended ok. Pairs of one round share their zygotes, which are the unit of
    evidence: they count as one, at the mean of their logarithms."""
    mine = pairs.of_test(test.base)
    by_round: dict[int, list[Pair]] = {}
    for pair in mine:
        if pair.ok:
            by_round.setdefault(pair.round, []).append(pair)
    base_failure, head_failure = _failures([pair.base for pair in mine], [pair.head for pair in mine])
    return TestPairs(
        test=test.base,
        head_test=test.head,
        device=pairs.header.device,
        pairs=tuple(
            PairOfValues(
                base=_mean_locations([pair.base for pair in several]),
                head=_mean_locations([pair.head for pair in several]),
            )
            for _, several in sorted(by_round.items())
        ),
        counts=tuple(
            PairOfValues(base=_exact_counts(pair.base), head=_exact_counts(pair.head)) for pair in mine if pair.ok
        ),
        base_failure=base_failure,
        head_failure=head_failure,
        now_and_then="" if base_failure and head_failure else _now_and_then(mine),
    )


def _mean_locations(processes: Sequence[Process | None]) -> dict[str, float]:
    """Geometric means; of what is not positive, the value if all have the same. Counts have no mean."""
    values = [values_of(process).locations for process in processes if process is not None]
    found: dict[str, float] = {}
    for name in values[0]:
        several = [one[name] for one in values if name in one]
        if CHANNELS[name].exact:
            continue
        if len(set(several)) == 1:
            found[name] = several[0]
        elif min(several) > 0:
            found[name] = geometric_mean(several)
    return found


def _exact_counts(process: Process | None) -> dict[str, float]:
    """Of one process: one that differs from the others of its round is seen as well."""
    locations = {} if process is None else values_of(process).locations
    return {name: value for name, value in locations.items() if CHANNELS[name].exact}


def failure(processes: Sequence[Process | None], *, alone: bool = False) -> str:
    """How a side failed, if it did so in most of its processes. Where it does so `alone`, it is said if that rests on
    fewer failures than are asked for: there were no more pairs."""
    failed, measured = _failed(processes)
    if 2 * len(failed) <= len(measured):
        return ""
    few = alone and len(failed) < FAILURES_TO_BELIEVE
    return _told(failed, measured, f", fewer failures than the {FAILURES_TO_BELIEVE} that are asked for" if few else "")


def _failures(base: Sequence[Process | None], head: Sequence[Process | None]) -> tuple[str, str]:
    """How both sides failed. Where one fails in most of its processes and the other in some, they are only two kinds of
    test if the difference is more than chance: one that fails in half of its processes is failing on both."""
    told = failure(base), failure(head)
    if all(told) or not any(told):
        return told
    told = failure(base, alone=True), failure(head, alone=True)
    (failed_base, of_base), (failed_head, of_head) = _failed(base), _failed(head)
    rare, often = sorted(
        [(len(failed_base), len(of_base)), (len(failed_head), len(of_head))], key=lambda side: side[0] / max(1, side[1])
    )
    if rare[0] == 0 or _by_chance(rare, often) < SURELY_APART:
        return told
    return _told(failed_base, of_base), _told(failed_head, of_head)


def _by_chance(rare: tuple[int, int], often: tuple[int, int]) -> float:
    """How likely so many failures fall on the side of `often`, (failed, measured), if both sides fail as often: the
    exact test of Fisher (1935), one-sided."""
    failures, measured = rare[0] + often[0], rare[1] + often[1]
    ways = sum(
        math.comb(often[1], count) * math.comb(rare[1], failures - count)
        for count in range(often[0], min(often[1], failures) + 1)
    )
    return ways / math.comb(measured, failures)


def _failed(processes: Sequence[Process | None]) -> tuple[list[Process], list[Process]]:
    """Those that failed, and all that were measured."""
    measured = [process for process in processes if process is not None]
    return [process for process in measured if process.status is not Status.OK], measured


def _told(failed: Sequence[Process], measured: Sequence[Process], doubt: str = "") -> str:
    return f"{failed[-1].status} in {len(failed)} of {len(measured)} processes{doubt}: {failed[-1].reason}"


def _now_and_then(pairs: Sequence[Pair]) -> str:
    """What to say of sides that fail in some of their processes, but not in most."""
    told = []
    for side, processes in (("base", [pair.base for pair in pairs]), ("head", [pair.head for pair in pairs])):
        failed, measured = _failed(processes)
        if failed and not failure(processes):
            told.append(f"{side}: {_told(failed, measured)}")
    return "; ".join(told)


def noise_table_of(pairs: Pairs) -> NoiseTable:
    """The A/A table of pairs whose sides are one build. Raises BenchmarkError if they tell of no noise: an empty table
    would stand in the place of the one before."""
    header = pairs.header
    measured = [
        AaPair(pair.test, pair.round, pair.index, values_of(pair.base), values_of(pair.head))
        for pair in pairs.pairs
        if pair.base is not None and pair.head is not None and pair.ok
    ]
    rows = noise_of(measured, header.device)
    if not rows.series:
        raise BenchmarkError(
            f"{len(measured)} pairs ended ok on both sides, and no test has two that differ: they tell of no noise; "
            "measure more --pairs, or see above why they failed"
        )
    return NoiseTable(
        machine_class=header.machine_class,
        device=header.device,
        made=header.started,
        build=header.base.build.id,
        environment=header.environment.fingerprint,
        harness=header.harness,
        rounds=max(row.pairs for row in rows.series),  # that were measured, however many were asked for
        processes=header.processes,
        series=rows.series,
        channels=rows.channels,
        not_exact=rows.not_exact,
    )
