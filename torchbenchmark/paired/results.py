"""From a file of pairs to its verdicts: the one function that `ab`, confirmation, bisection and `/benchmark` call."""

from collections.abc import Sequence
from statistics import geometric_mean

from torchbenchmark.channels import CHANNELS
from torchbenchmark.paired.comparison import Comparison, Criterion, PairOfValues, TestPairs, compare
from torchbenchmark.paired.noise import AaPair, noise_of
from torchbenchmark.paired.noise_table import NoiseTable
from torchbenchmark.paired.pairs_file import Pair, PairedTest, Pairs
from torchbenchmark.paired.values import values_of
from torchbenchmark.records import Process, Status


def judge_pairs(pairs: Pairs, criterion: Criterion, noise: NoiseTable | None = None) -> Comparison:
    """The verdicts of what was measured, all tests together."""
    return compare([collapse(pairs, test) for test in measured_tests(pairs)], criterion, noise)


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
        base_failure=failure([pair.base for pair in mine]),
        head_failure=failure([pair.head for pair in mine]),
        now_and_then=_now_and_then(mine),
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


def failure(processes: Sequence[Process | None]) -> str:
    """How a side failed, if it did so in most of its processes."""
    measured = [process for process in processes if process is not None]
    failed = [process for process in measured if process.status is not Status.OK]
    if len(failed) * 2 <= len(measured):
        return ""
    return f"{failed[-1].status} in {len(failed)} of {len(measured)} processes: {failed[-1].reason}"


def _now_and_then(pairs: Sequence[Pair]) -> str:
    """What to say of sides that fail in some of their processes, but not in most."""
    told = []
    for side, processes in (("base", [pair.base for pair in pairs]), ("head", [pair.head for pair in pairs])):
        measured = [process for process in processes if process is not None]
        failed = [process for process in measured if process.status is not Status.OK]
        if failed and not failure(processes):
            told.append(f"{side}: {failed[-1].status} in {len(failed)} of {len(measured)}: {failed[-1].reason}")
    return "; ".join(told)


def noise_table_of(pairs: Pairs) -> NoiseTable:
    """The A/A table of pairs whose sides are one build."""
    header = pairs.header
    measured = [
        AaPair(pair.test, pair.round, pair.index, values_of(pair.base), values_of(pair.head))
        for pair in pairs.pairs
        if pair.base is not None and pair.head is not None and pair.ok
    ]
    rows = noise_of(measured, header.device)
    return NoiseTable(
        machine_class=header.machine_class,
        device=header.device,
        made=header.started,
        build=header.base.build.id,
        environment=header.environment.fingerprint,
        harness=header.harness,
        rounds=header.rounds,
        processes=header.processes,
        series=rows.series,
        channels=rows.channels,
        not_exact=rows.not_exact,
    )
