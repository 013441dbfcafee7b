"""Log ratios of single pairs: what a comparison is made of, and what a confirmation is told."""

import math

import numpy
import pytest
from test_comparison import pairs_of, table

from torchbenchmark.paired.comparison import Criterion, compare
from torchbenchmark.paired.pair_series import PairOfValues, TestPairs, log_ratios

CPU_TEST = "test_eval[dlrm-cpu-eager]"
HOSTS = [(0.001, 0.0012), (0.0011, 0.001), (0.001, 0.0009), (0.0013, 0.0013)]
BASE, HEAD = [1.0, 1.1, 0.9, 1.3], [1.3, 1.0, 0.9, 1.35]


def of_cpu(pairs=4, **fields):
    return pairs_of(CPU_TEST, BASE[:pairs], HEAD[:pairs], device="cpu", channel="cpu_time", probes=HOSTS, **fields)


@pytest.mark.parametrize("noise", [None, table(0.01, channels=("cpu_time",), slope=0.5)])
def test_a_time_of_the_cpu_is_adjusted_by_the_probe_as_in_a_comparison(noise):
    pairs = of_cpu()
    slope = 0.77 if noise is None else 0.5
    expected = [
        math.log(head / base) - slope * math.log(after / before)
        for base, head, (before, after) in zip(BASE, HEAD, HOSTS, strict=True)
    ]
    found = [one["cpu_time"] for one in log_ratios(pairs, noise)]
    assert found == pytest.approx(expected)
    (effect,) = compare([pairs], Criterion(channels=("cpu_time",))).effects
    if noise is None:
        assert math.log1p(effect.effect) == pytest.approx(numpy.mean(found))
    assert all("host_probe" not in one for one in log_ratios(pairs, noise))


def test_two_pairs_are_not_adjusted_and_a_probe_that_differs_between_the_sides_adjusts_nothing():
    found = [one["cpu_time"] for one in log_ratios(of_cpu(pairs=2))]
    assert found == pytest.approx([math.log(1.3), math.log(1.0 / 1.1)])
    slow = [(0.001, 0.002 + index / 1e6) for index in range(4)]
    moved = pairs_of(CPU_TEST, BASE, HEAD, device="cpu", channel="cpu_time", probes=slow)
    for one, base, head in zip(log_ratios(moved), BASE, HEAD, strict=True):
        assert one == {"cpu_time": pytest.approx(math.log(head / base))}


def test_what_was_divided_by_a_probe_that_differs_between_the_sides_says_no_more_than_the_time_itself():
    """Threads of head that spin on slow the probe, which then hides or turns round what the time shows."""

    def told(base, head, before, after):
        pairs = tuple(
            PairOfValues(
                {"cpu_time": base, "host_probe": before, "cpu_time_adjusted": base * 0.001 / before},
                {"cpu_time": head, "host_probe": after, "cpu_time_adjusted": head * 0.001 / (after + index / 1e9)},
            )
            for index in range(4)
        )
        return [one["cpu_time_adjusted"] for one in log_ratios(TestPairs(CPU_TEST, CPU_TEST, "cpu", pairs))]

    assert told(1.0, 20.0, 0.001, 0.002) == pytest.approx([math.log(10)] * 4, abs=1e-5), "slower still, and by less"
    assert told(1.0, 1.2, 0.001, 0.002) == [0.0] * 4, "of two that do not agree which is slower, neither"
    assert told(1.0, 1.0, 0.002, 0.001) == [0.0] * 4, "a slow probe beside base makes no slow head"
    assert told(1.0, 1.2, 0.002, 0.001) == pytest.approx([math.log(1.2)] * 4)


@pytest.mark.parametrize("probes", [(5e-324, 1e18), (1e18, 5e-324)])
def test_numbers_whose_quotient_no_float_holds_have_a_logarithm_still(probes):
    """What a build reports is any number above 0."""
    wild = pairs_of(CPU_TEST, BASE, HEAD, device="cpu", channel="cpu_time", probes=[probes, *HOSTS[1:]])
    counted = tuple(PairOfValues({"operators": one}, {"operators": other}) for one, other in [probes] * 4)
    for one in log_ratios(TestPairs(CPU_TEST, CPU_TEST, "cpu", wild.pairs, counted)):
        assert math.isfinite(one["cpu_time"]) and abs(one["operators"]) == pytest.approx(
            math.log(1e18) + 744.44, abs=0.1
        )
    (effect,) = compare([wild], Criterion(channels=("cpu_time",))).effects
    assert effect.verdict != "not measured"


def test_less_of_what_should_be_high_is_slower():
    (one,) = log_ratios(pairs_of(CPU_TEST, [100.0], [80.0], device="cpu", channel="throughput"))
    assert one["throughput"] == pytest.approx(math.log(100 / 80))


def test_counts_come_as_they_are_and_a_pair_without_a_channel_leaves_it_out():
    values = [PairOfValues({"latency": 1.0}, {"latency": 2.0}), PairOfValues({}, {"latency": 2.0})]
    counts = [
        PairOfValues({"operators": 7, "graphs": 0}, {"operators": 14, "graphs": 0}),
        PairOfValues({"operators": 0}, {"operators": 7}),
    ]
    found = log_ratios(TestPairs(CPU_TEST, CPU_TEST, "cpu", tuple(values), tuple(counts)))
    assert found == [
        {"latency": pytest.approx(math.log(2)), "operators": pytest.approx(math.log(2)), "graphs": 0.0},
        {},
    ]


def test_counts_of_several_processes_a_round_belong_to_no_one_pair():
    pair = PairOfValues({"operators": 7}, {"operators": 7})
    with pytest.raises(ValueError, match="2 pairs of processes in 1 rounds"):
        log_ratios(TestPairs(CPU_TEST, CPU_TEST, "cpu", (pair,), (pair, pair)))
