"""A comparison that ends early, on pairs whose truth is known."""

import numpy as np
import pytest

from torchbenchmark.paired.comparison import Criterion
from torchbenchmark.paired.pairs_file import SIDES, MeasuredSide, Pair, PairedTest, Pairs, PairsHeader
from torchbenchmark.paired.sequential import judge_sequentially

SLOW, SAME = "test_eval[dlrm-cpu-eager]", "test_eval[resnet18-cpu-eager]"
CRITERION = Criterion(channels=("latency",))


@pytest.fixture
def measured(make_header, make_process):
    """Pairs of two tests, of which head is half as fast in one."""

    def make(*turns, processes=1):
        run = make_header(SLOW, SAME, rounds=24, processes=processes)
        side = MeasuredSide(asked="/b/python", build=run.build)
        fields = ("run", "suite", "machine_class", "device", "started", "seed", "rounds", "processes", "measuring",
                  "environment", "harness")  # fmt: skip
        tests = tuple(PairedTest(base=one.test, head=one.test, workload=one.workload) for one in run.plan)
        header = PairsHeader(tests=tests, base=side, head=side, **{name: getattr(run, name) for name in fields})
        noise = np.random.default_rng(5)

        def pair(test, number, index):
            times = np.exp(noise.normal(0, 0.001, 2)) * (1, 2 if test == SLOW else 1)
            sides = {
                name: make_process(float(time), round=number, index=index)
                for name, time in zip(SIDES, times, strict=True)
            }
            return Pair(test=test, round=number, index=index, order=SIDES, **sides)

        return Pairs(header, tuple(pair(*turn) for turn in turns))

    return make


def test_a_test_is_decided_at_a_look_and_not_between_two(measured):
    rounds = [(test, number, 0) for number in range(1, 7) for test in (SLOW, SAME)]
    comparison, decided = judge_sequentially(measured(*rounds), CRITERION)
    assert list(decided) == [SLOW, SAME]
    assert {effect.test: effect.verdict for effect in comparison.effects} == {SLOW: "slower", SAME: "no change"}
    assert list(judge_sequentially(measured(*rounds[:10]), CRITERION)[1]) == []


def test_a_round_that_a_kill_has_cut_is_no_look_for_the_tests_that_it_had_not_reached(measured):
    before = [(test, number, 0) for number in range(1, 6) for test in (SLOW, SAME)]
    assert list(judge_sequentially(measured(*before, (SAME, 6, 0)), CRITERION)[1]) == [SAME]
    assert list(judge_sequentially(measured(*before, (SLOW, 6, 0)), CRITERION)[1]) == [SLOW]


def test_a_test_with_half_of_its_processes_in_a_round_waits_for_the_others(measured):
    turns = [(test, number, index) for number in range(1, 7) for test in (SLOW, SAME) for index in (0, 1)]
    assert list(judge_sequentially(measured(*turns, processes=2), CRITERION)[1]) == [SLOW, SAME]
    assert list(judge_sequentially(measured(*turns[:-1], processes=2), CRITERION)[1]) == [SLOW]


def test_four_pairs_that_fall_alike_decide_nothing(measured, make_process):
    """As they do now and then where the processes of one build come at two speeds."""
    speeds = [1.1, 1.1, 1.1, 1.1, 1.0, 0.9, 1.0, 1.1, 0.9, 1.0, 1.0, 1.1]
    pairs = measured(*[(SAME, number, 0) for number in range(1, 13)])
    alike = [
        pair.model_copy(update={"head": make_process(pair.base.channels["latency"].median * speed, round=pair.round)})
        for pair, speed in zip(pairs.pairs, speeds, strict=True)
    ]
    for rounds in (4, 5, 12):
        found, decided = judge_sequentially(Pairs(pairs.header, tuple(alike[:rounds])), CRITERION)
        assert list(decided) == [] and found.of_test(SAME)[0].verdict != "slower"
