"""Verdicts of pairs whose truth is known: made-up noise, planted effects."""

import json
import math

import numpy
import pytest

from torchbenchmark.paired.comparison import Comparison, Criterion, compare
from torchbenchmark.paired.noise_table import ChannelNoise, NoiseTable, SeriesNoise
from torchbenchmark.paired.pair_series import PairOfValues, TestPairs

TESTS = [f"test_eval[m{index}-cuda-eager]" for index in range(12)]


def pairs_of(test, base, head, *, device="cuda", channel="gpu_time", probes=None, also=None, **fields):
    pairs = tuple(
        PairOfValues(
            {channel: one, **({"host_probe": probes[index][0]} if probes else {}), **(also or {})},
            {channel: other, **({"host_probe": probes[index][1]} if probes else {}), **(also or {})},
        )
        for index, (one, other) in enumerate(zip(base, head, strict=True))
    )
    return TestPairs(test, fields.pop("head_test", test), device, pairs, **fields)


def made(seed, pairs, sd, effects=None, tests=TESTS, **fields):
    """Pairs of every test with log-normal noise of `sd` on either side; `effects` are shares."""
    generator = numpy.random.default_rng(seed)
    made = []
    for test in tests:
        base, head = numpy.exp(generator.normal(0, sd, (2, pairs))) * 0.01
        made.append(pairs_of(test, base, head * (1 + (effects or {}).get(test, 0.0)), **fields))
    return made


def table(pair_sd, degrees=30.0, channels=("gpu_time",), slope=None):
    return NoiseTable(
        machine_class="cuda-x1",
        device="cuda",
        made="2026-11-28T00:00:00Z",
        build="b",
        environment="e",
        harness="h",
        rounds=10,
        processes=1,
        series=(),
        channels=tuple(
            ChannelNoise(channel=name, tests=10, pair_sd=pair_sd, degrees=degrees, margin=2 * pair_sd, slope=slope)
            for name in channels
        ),
    )


def test_a_table_that_does_not_know_a_test_is_not_said_to_have_served():
    """Of one or two tests there is no typical variance for the others."""
    pairs = made(1, 6, 0.01, tests=TESTS[:2])
    own = SeriesNoise(test=TESTS[0], channel="gpu_time", pairs=10, pair_sd=0.01, spread=0.01)
    few = table(0.01, degrees=0.0).model_copy(update={"series": (own,)})
    assert compare(pairs, KERNELS, few).prior.endswith(f"; not for gpu_time, of which it does not know {TESTS[1]}")
    assert "not for" not in compare(pairs[:1], KERNELS, few).prior
    assert "not for" not in compare(pairs, KERNELS, table(0.01)).prior


def verdicts(comparison: Comparison, channel="gpu_time"):
    return {effect.test: effect.verdict for effect in comparison.effects if effect.channel == channel}


KERNELS = Criterion(channels=("gpu_time",))


def test_a_planted_step_is_called_and_no_other_test_is():
    found = compare(made(1, 6, 0.001, {TESTS[3]: 0.01}), KERNELS, table(0.0014))
    assert verdicts(found) == {test: "slower" if test == TESTS[3] else "no change" for test in TESTS}
    assert found.verdict == "slower"
    effect = found.of_test(TESTS[3])[0]
    assert effect.low < 0.01 < effect.high and effect.low > 0
    assert "A/A table of cuda-x1, 2026-11-28" in found.prior


def test_a_faster_build_is_faster_by_symmetry():
    found = compare(made(1, 6, 0.001, {TESTS[0]: -0.02}), KERNELS, table(0.0014))
    assert verdicts(found)[TESTS[0]] == "faster"


def test_the_same_build_against_itself_is_called_in_no_more_than_a_few_of_hundred_runs():
    calls = 0
    for seed in range(100):
        found = compare(made(seed, 6, 0.002), KERNELS, table(0.0028))
        calls += bool({"slower", "faster"} & set(verdicts(found).values()))
    assert calls <= 4, "1 % is promised; 5 or more of 100 are seen once in 300"


def test_a_table_makes_six_pairs_tell_what_alone_they_would_not():
    seen = {True: 0, False: 0}
    for seed in range(20):
        pairs = made(seed, 6, 0.002, dict.fromkeys(TESTS[:3], 0.0055))
        for known in seen:
            found = verdicts(compare(pairs, KERNELS, table(0.0028) if known else None))
            seen[known] += sum(found[test] == "slower" for test in TESTS[:3])
    assert seen[True] >= 2 * seen[False]


def test_what_is_inconclusive_says_how_many_more_pairs_it_needs_and_those_do():
    for seed in range(10):
        few = compare(made(seed, 6, 0.01, tests=TESTS[:3]), KERNELS, table(0.014))
        for effect in few.effects:
            assert effect.verdict == "inconclusive" and 0 < effect.needs < 2000
    needs = 6 + max(effect.needs for effect in few.effects)
    many = compare(made(5, needs + 60, 0.01, tests=TESTS[:3]), KERNELS, table(0.014))
    assert set(verdicts(many).values()) == {"no change"}


def test_a_slow_host_is_no_slow_build_where_the_probe_tells():
    generator = numpy.random.default_rng(3)
    host = numpy.exp(generator.normal(0, 0.25, (2, 8)))
    noise = numpy.exp(generator.normal(0, 0.01, (2, 8)))
    probes = list(zip(0.001 * host[0], 0.001 * host[1], strict=True))
    values = [0.01 * host[side] ** 1.2 * noise[side] for side in range(2)]
    one = pairs_of(TESTS[0], values[0], values[1] * 1.10, channel="latency", probes=probes, also={"gpu_busy": 0.002})
    (effect,) = compare([one], Criterion(channels=("latency",))).effects
    assert effect.verdict == "slower" and effect.adjusted_by == "host_probe"
    assert effect.low < 0.10 < effect.high
    _, low, high = effect.unadjusted
    assert low < 0 < high and high - low > 5 * (effect.high - effect.low)


@pytest.mark.parametrize("also", [{"gpu_busy": 0.0099}, {}])
def test_a_test_that_the_gpu_holds_up_or_of_which_that_is_not_known_is_not_adjusted(also):
    generator = numpy.random.default_rng(3)
    noise = numpy.exp(generator.normal(0, 0.002, (2, 8)))
    probes = list(zip(*(0.001 * numpy.exp(generator.normal(0, 0.25, (2, 8)))), strict=True))
    one = pairs_of(TESTS[0], 0.01 * noise[0], 0.0102 * noise[1], channel="latency", probes=probes, also=also)
    (effect,) = compare([one], Criterion(channels=("latency",))).effects
    assert effect.verdict == "slower" and effect.adjusted_by == "" and effect.reason == ""


def test_a_probe_that_one_side_slows_itself_does_not_hide_the_side():
    generator = numpy.random.default_rng(4)
    noise = numpy.exp(generator.normal(0, 0.02, (4, 8)))
    probes = list(zip(0.001 * noise[0], 0.0016 * noise[1], strict=True))
    one = pairs_of(
        TESTS[0], 0.01 * noise[2], 0.015 * noise[3], channel="latency", probes=probes, also={"gpu_busy": 0.002}
    )
    (effect,) = compare([one], Criterion(channels=("latency",))).effects
    assert effect.verdict == "slower" and effect.low < 0.5 < effect.high
    assert effect.adjusted_by == "" and "adjusts nothing" in effect.reason


LATENCY = Criterion(channels=("latency",))
WAITS_FOR_THE_HOST = {"gpu_busy": 0.2}  # of a latency of about one


def test_two_pairs_are_not_adjusted_by_a_probe_that_may_itself_have_moved():
    """Threads of head spin on and slow the probe by 10 %; its own time is that of base."""
    generator = numpy.random.default_rng(3)
    tests = []
    for name in TESTS:
        base, head = numpy.exp(generator.normal(0, 0.005, (2, 2)))
        probes = [(one, 1.1 * other) for one, other in numpy.exp(generator.normal(0, 0.005, (2, 2)))]
        tests.append(pairs_of(name, base, head, channel="latency", probes=probes, also=WAITS_FOR_THE_HOST))
    found = compare(tests, LATENCY, table(0.01, channels=("latency",), slope=1.0))
    assert set(verdicts(found, "latency").values()) <= {"inconclusive", "no change"}
    assert not any(effect.adjusted_by for effect in found.effects)


def test_a_probe_that_is_slower_by_the_same_in_every_pair_has_moved():
    head, waits = [1, 1.01, 0.99, 1], {"channel": "latency", "also": WAITS_FOR_THE_HOST}
    found = compare([pairs_of("a", [1] * 4, head, probes=[(1, 1.1)] * 4, **waits)], LATENCY)
    assert found.effects[0].adjusted_by == "" and "probe differs between the sides" in found.effects[0].reason
    still = compare([pairs_of("a", [1] * 4, head, probes=[(1, 1)] * 4, **waits)], LATENCY)
    assert still.effects[0].reason == ""


def test_a_time_that_is_divided_by_a_probe_which_has_moved_is_not_judged():
    generator = numpy.random.default_rng(3)
    noise = numpy.exp(generator.normal(0, 0.005, (4, 6)))
    channel, rests = "cpu_time_adjusted", Criterion(channels=("cpu_time_adjusted",))
    for slowed, verdict in ((1.0, "no change"), (1.1, "not measured")):
        probes = list(zip(noise[2], slowed * noise[3], strict=True))
        made_up = pairs_of("a", noise[0], noise[1] / slowed, device="cpu", channel=channel, probes=probes)
        (effect,) = compare([made_up], rests).effects
        assert effect.verdict == verdict, "head has the time of base; only its probe is slower"
    assert effect.reason == "the host probe differs between the sides, and cpu_time_adjusted rests on it"


def test_an_interval_without_the_probe_belongs_to_the_same_family_as_that_with_it():
    generator = numpy.random.default_rng(8)
    latency, kernels = numpy.exp(generator.normal(0, 0.01, (2, 2, 6)))
    probes = numpy.exp(generator.normal(0, 1e-7, (2, 6)))
    sides = [
        [
            {"latency": time, "gpu_time": kernel, "host_probe": probe, **WAITS_FOR_THE_HOST}
            for time, kernel, probe in zip(latency[side], kernels[side], probes[side], strict=True)
        ]
        for side in range(2)
    ]
    pairs = tuple(PairOfValues(base, head) for base, head in zip(*sides, strict=True))
    found = compare([TestPairs("a", "a", "cuda", pairs)], Criterion())
    (effect,) = (effect for effect in found.effects if effect.channel == "latency")
    assert effect.unadjusted == pytest.approx((effect.effect, effect.low, effect.high), abs=1e-5)


def test_kernel_time_is_not_adjusted_by_the_host():
    probes = [(0.001, 0.002)] * 6
    base = [1.0, 1.001, 0.999, 1.0, 1.001, 0.999]
    (effect,) = compare([pairs_of(TESTS[0], base, [b * 1.0001 for b in base[::-1]], probes=probes)], KERNELS).effects
    assert effect.adjusted_by == "" and effect.verdict == "no change"


def test_counts_are_compared_exactly():
    def with_counts(base, head):
        both = zip(base, head, strict=True)
        pairs = tuple(PairOfValues({"launches": one}, {"launches": other}) for one, other in both)
        return TestPairs(TESTS[0], TESTS[0], "cuda", (), counts=pairs)

    def verdict(base, head):
        (count,) = compare([with_counts(base, head)], KERNELS).counts
        return count.verdict, count.base, count.head

    assert verdict([7, 7], [7, 7]) == ("same", (7,), (7,))
    assert verdict([7, 7], [8, 8]) == ("changed", (7,), (8,))
    assert verdict([7, 7], [7, 8]) == ("not exact", (7,), (7, 8))


def test_a_test_that_fails_on_one_side_is_loud_whatever_the_others_say():
    tests = made(1, 6, 0.001, {TESTS[3]: 0.5})
    tests[0] = pairs_of(TESTS[0], [], [], head_failure="crash in 3 of 3 processes: ended by signal 11")
    tests[1] = pairs_of(TESTS[1], [], [], base_failure="error in 3 of 3 processes: x")
    tests[2] = pairs_of(TESTS[2], [], [], base_failure="error: x", head_failure="error: x")
    found = compare(tests, KERNELS, table(0.0014))
    assert found.verdict == "newly failing"
    assert [outcome.verdict for outcome in found.tests[:4]] == ["newly failing", "fixed", "failing", "ok"]
    assert found.tests[0].reason.startswith("head: crash in 3 of 3")


@pytest.mark.parametrize("pairs", [0, 1])
def test_too_few_pairs_give_no_interval_and_say_so(pairs):
    (effect,) = compare([pairs_of(TESTS[0], [1.0] * pairs, [2.0] * pairs)], KERNELS).effects
    assert effect.verdict == "not measured" and f"{pairs} pair" in effect.reason


def test_a_ratio_that_never_varies_is_judged_as_it_stands():
    (effect,) = compare([pairs_of(TESTS[0], [1.0] * 6, [1.5] * 6)], KERNELS).effects
    assert (effect.verdict, effect.effect) == ("slower", pytest.approx(0.5))


def test_a_bound_that_no_number_holds_is_a_large_one_and_can_be_written():
    found = compare(made(1, 2, 0.3, tests=[f"t{index}" for index in range(80)]), KERNELS)
    assert set(verdicts(found).values()) == {"inconclusive"}
    absurd = compare([pairs_of("a", [5e-324] * 2, [1e18, 1e17]), pairs_of("b", [5e-324] * 2, [1e18] * 2)], KERNELS)
    assert set(verdicts(absurd).values()) == {"slower"}
    for comparison in (found, absurd):
        json.dumps(comparison.model_dump(mode="json"), allow_nan=False)


def test_a_channel_whose_pairs_are_mostly_the_same_does_not_take_the_intervals_of_all_others():
    planted = made(2, 12, 0.01, {"slow": 0.1}, tests=["slow"])
    found = compare([*planted, pairs_of("steps", [1.0] * 12, [1.0] * 11 + [1.1])], KERNELS)
    assert verdicts(found) == {"slow": "slower", "steps": "inconclusive"}
    assert found.method.startswith("Student t")
    assert all(math.isfinite(effect.high) for effect in found.effects)


def test_a_level_that_a_bootstrap_cannot_bear_is_judged_by_student_at_once():
    found = compare(made(2, 12, 0.01), Criterion(level=0.999999, channels=("gpu_time",)))
    assert found.method.startswith("Student t")


def test_a_ratio_that_differs_by_rounding_only_never_varies():
    found = compare([pairs_of("a", [0.1, 0.3, 0.7], [0.11, 0.33, 0.77])], KERNELS)
    assert found.effects[0].reason == "the same ratio in every pair"
    assert found.effects[0].low == found.effects[0].high == pytest.approx(0.1)


def test_a_value_that_is_not_positive_is_no_pair():
    (effect,) = compare([pairs_of(TESTS[0], [1.0, 0.0, 1.0, 1.01], [1.0, 1.0, 0.99, 1.0])], KERNELS).effects
    assert effect.pairs == 3


def test_from_twelve_pairs_on_the_intervals_are_bootstrapped_and_hold_as_well():
    calls = 0
    for seed in range(15):
        found = compare(made(seed, 12, 0.002, tests=TESTS[:6]), KERNELS)
        assert found.method.startswith("max-t bootstrap")
        calls += bool({"slower", "faster"} & set(verdicts(found).values()))
    assert calls <= 2
    slower = compare(made(1, 12, 0.002, {TESTS[0]: 0.02}, tests=TESTS[:6]), KERNELS)
    assert verdicts(slower)[TESTS[0]] == "slower"


def test_a_table_knows_a_canary_better_than_a_test_that_was_none():
    known = table(0.01, degrees=4.0)
    canary = SeriesNoise(test=TESTS[0], channel="gpu_time", pairs=21, pair_sd=0.001, spread=0.001)
    known = known.model_copy(update={"series": (canary,)})
    own, other = known.pair_variance(TESTS[0], "gpu_time"), known.pair_variance(TESTS[1], "gpu_time")
    assert (other.variance, other.degrees) == (pytest.approx(1e-4), 4.0)
    assert own.degrees == 24 and own.variance == pytest.approx((4 * 1e-4 + 20 * 1e-6) / 24)
    assert known.pair_variance(TESTS[0], "latency") is None
    assert math.isclose(math.sqrt(own.variance), 0.00418, rel_tol=0.01)
