"""Canaries: read per night out of the store, and whether the frozen build moved, on made-up nights of known shifts."""

import math
from datetime import timedelta

import numpy as np
import pytest
from night_factory import FIRST_NIGHT, run_of
from scipy import stats

from baselines.canaries import FEWEST_NIGHTS, LIMIT, CanaryNight, moved, read_canaries
from baselines.history import add_night, rebuild_history
from baselines.runs import run_prefix, store_run
from baselines.series import summarise
from baselines.store import open_store
from torchbenchmark.records import CanaryOf, Run, Shard, Status

TESTS = [f"test_eval[canary{number}-cpu-eager]" for number in range(5)]
NOISE = 0.004  # of a night, in log units
PROCESSES = 3


def canary_run(day: int, tests, turn="first", shard=Shard(), lock="lock1", build="frozen-1", **fields) -> Run:  # noqa: B008
    run = run_of(day, tests, suite="canary", **fields)
    canary = CanaryOf(run=run.header.run, shard=shard, turn=turn, lock=lock)
    header = run.header.model_copy(
        update={
            "run": canary.name,
            "canary": canary,
            "build": run.header.build.model_copy(update={"id": build}),
        }
    )
    return Run(header, tuple(record.model_copy(update={"run": header.run}) for record in run.records))


def night(day: int, tests, **fields) -> CanaryNight:
    runs = tuple(summarise(canary_run(day, tests, turn=turn, **fields)) for turn in ("first", "last"))
    return CanaryNight(f"r{day:04}", runs[0].started, runs)


def values(rng, shift=0.0, tests=TESTS, noise=NOISE):
    """A night's times: each canary with a night's noise of its own, and little between its processes."""
    levels = {test: 0.001 * (number + 1) for number, test in enumerate(tests)}
    return {
        test: {"cpu_time": list(level * np.exp(shift + noise * rng.normal() + noise / 10 * rng.normal(size=PROCESSES)))}
        for test, level in levels.items()
    }


def nights(rng, count, shift_of=lambda day: 0.0, **fields):
    return [night(day, values(rng, shift_of(day)), **fields) for day in range(count)]


def judged(history, tonight, **options):
    return moved(history, tonight, "cpu_time", **options)


def test_a_shift_of_all_canaries_is_found_with_its_size_and_its_sign():
    for seed, shift in enumerate((0.02, -0.02, 0.05)):
        rng = np.random.default_rng(seed)
        found = judged(nights(rng, 30), night(30, values(rng, shift)))
        assert found.moved and found.statistic * shift > 0
        assert abs(found.shift - shift) < 4 * found.error < 0.02
        assert len(found.tests) == 5
        assert f"the frozen build moved: cpu_time of 5 canaries {math.expm1(found.shift):+.2%}" in found.sentence
        assert "beyond 3 standard deviations: " in found.sentence


def test_nights_in_which_nothing_happens_are_not_suspected_more_often_than_a_normal_is_beyond_the_limit():
    """Without a change z is normal but for the error of its scale, which adds a tenth to its deviation over 30 nights;
    clipping only takes away. So the mean over five times sqrt(5) is beyond 4 as often as a normal of that deviation."""
    found = []
    for seed in range(6):
        every = nights(np.random.default_rng(seed), 130)
        found += [judged(every[day - 30 : day], every[day]).moved for day in range(30, 130)]
    assert sum(found) <= stats.binom.ppf(0.999, len(found), 2 * stats.norm.sf(LIMIT / 1.1))


def test_one_wild_canary_is_no_environment_and_is_named():
    rng = np.random.default_rng(1)
    history = nights(rng, 30)
    wild = {**values(rng), TESTS[2]: {"cpu_time": 0.5}}
    found = judged(history, night(30, wild))
    assert not found.moved and found.tests[0].test == TESTS[2]
    assert f"beyond 3 standard deviations: {TESTS[2]} +" in found.sentence


def test_a_canary_that_is_noisy_counts_by_its_own_noise():
    rng = np.random.default_rng(2)
    history = [night(day, values(rng, noise=0.05)) for day in range(30)]
    assert not judged(history, night(30, values(rng, 0.02))).moved


def test_a_level_needs_seven_nights():
    rng = np.random.default_rng(3)
    history = nights(rng, FEWEST_NIGHTS)
    assert judged(history, night(30, values(rng, 0.1))).moved
    found = judged(history[1:], night(30, values(rng, 0.1)))
    assert not found.moved and found.tests == ()
    assert found.sentence == "the frozen build says nothing: 6 comparable nights before, and a level needs 7"


def test_the_level_begins_again_with_the_environment():
    rng = np.random.default_rng(4)
    history = nights(rng, 40, lambda day: 0.03 if day >= 30 else 0.0)
    tonight = night(40, values(rng, 0.03))
    assert judged(history, tonight).moved, "the level is the old one"
    since = FIRST_NIGHT + timedelta(days=30)
    found = judged(history, tonight, since=since)
    assert not found.moved and {one.nights for one in found.tests} == {10}
    assert judged(history, night(40, values(rng, 0.06)), since=since).moved
    assert "3 comparable nights before" in judged(history, tonight, since=since + timedelta(days=7)).sentence


def test_nights_that_measured_something_else_or_otherwise_are_no_level():
    rng = np.random.default_rng(5)
    history = nights(rng, 20)
    tonight = values(rng, 0.05)
    assert judged(history, night(20, tonight)).moved
    assert not judged(history, night(20, tonight, workloads=dict.fromkeys(TESTS, "w2"))).tests
    assert not judged(history, night(20, tonight, units={"cpu_time": "ms"})).tests
    slower = [
        run.model_copy(update={"measuring": run.measuring.model_copy(update={"budget_s": 9.0})})
        for run in night(20, tonight).runs
    ]
    assert not judged(history, CanaryNight("r0020", slower[0].started, tuple(slower))).tests
    assert judged(history, night(20, tonight, fingerprint="env2")).moved, "the environment is what is asked about"


def test_a_canary_that_fails_on_the_frozen_build_is_told_and_the_others_judged():
    rng = np.random.default_rng(6)
    history = nights(rng, 20)
    found = judged(history, night(20, {**values(rng), TESTS[0]: Status.CRASH}))
    assert not found.moved and len(found.tests) == 4
    assert found.failing == (f"{TESTS[0]} fails on it, crash: planted crash",)
    assert found.failing[0] in found.sentence
    again = judged([*history, night(20, {**values(rng), TESTS[0]: Status.CRASH})], night(21, {TESTS[0]: Status.CRASH}))
    assert again.failing == () and again.sentence == "the frozen build says nothing: no canary has cpu_time tonight"


def test_a_rate_that_falls_is_slower_as_a_time_that_grows():
    def of(rng, factor=1.0):
        return {test: {"throughput": 100 * factor * math.exp(NOISE * rng.normal())} for test in TESTS}

    rng = np.random.default_rng(7)
    history = [night(day, of(rng)) for day in range(20)]
    assert moved(history, night(20, of(rng, 0.9)), "throughput").shift == pytest.approx(-math.log(0.9), abs=0.01)


def test_first_and_last_can_be_read_apart():
    tonight = CanaryNight(
        "r0000",
        FIRST_NIGHT,
        tuple(
            summarise(canary_run(0, {TESTS[0]: {"cpu_time": [value, value + 1]}}, turn=turn))
            for turn, value in (("first", 1.0), ("last", 3.0))
        ),
    )
    assert tonight.values(TESTS[0], "cpu_time") == [1.0, 2.0, 3.0, 4.0]
    assert tonight.values(TESTS[0], "cpu_time", turn="last") == [3.0, 4.0]
    assert tonight.values(TESTS[1], "cpu_time") == tonight.values(TESTS[0], "latency") == []


# In the store


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path / "store"))


def put(store, *runs: Run) -> None:
    for run in runs:
        store_run(store, run)
        add_night(store, run_prefix(run.header))


def read(store, day: int, **options):
    return read_canaries(store, "canary", "cpu-4t", f"r{day:04}", FIRST_NIGHT + timedelta(days=day), **options)


def both(day, shards=1, **fields):
    return [
        canary_run(
            day, {TESTS[0]: 1.0 + day, TESTS[1]: 2.0}, turn=turn, shard=Shard(index=index, count=shards), **fields
        )
        for turn in ("first", "last")
        for index in range(1, shards + 1)
    ]


def test_the_canaries_of_a_night_and_of_the_nights_before_come_out_of_few_objects(store, monkeypatch):
    for day in range(70):
        for run in both(day, shards=2):
            store_run(store, run)
    rebuild_history(store, "canary", "cpu-4t")
    asked = []
    real = type(store).read_if_present
    monkeypatch.setattr(type(store), "read_if_present", lambda self, key: asked.append(key) or real(self, key))
    history, tonight = read(store, 65)
    assert len(history) == 61 and len(asked) == 3
    assert [night.run for night in history] == [f"r{day:04}" for day in range(4, 65)]
    assert all(len(night.runs) == 4 for night in (*history, tonight))
    assert history[-1].values(TESTS[0], "cpu_time") == [65.0] * 4
    assert tonight.values(TESTS[0], "cpu_time", turn="first") == [66.0] * 2


def test_only_nights_of_tonights_frozen_build_with_its_lock_count(store):
    put(store, *both(0, build="frozen-0"), *both(1, lock="lock0"), *both(2), *both(3))
    history, tonight = read(store, 3)
    assert [night.run for night in history] == ["r0002"] and tonight.run == "r0003"
    assert read(store, 4) == ([], None)


def test_a_shard_with_another_frozen_build_than_the_first_is_left_out_of_its_night(store):
    mine, other = ([run for run in both(0, shards=2, lock=lock) if run.header.canary.shard.index == index]
                   for index, lock in ((1, "lock1"), (2, "lock2")))  # fmt: skip
    put(store, *mine, *other)
    _, tonight = read(store, 0)
    assert {run.canary.lock for run in tonight.runs} == {"lock1"} and len(tonight.runs) == 2
    assert {run.canary.lock for run in tonight.left_out} == {"lock2"}
    assert tonight.values(TESTS[0], "cpu_time") == [1.0, 1.0]


def test_what_was_measured_counts_where_it_was_first_said_not_to_have_come(store):
    nothing = [
        canary_run(1, dict.fromkeys(TESTS[:2], Status.ERROR), turn=turn, lock="", build="not-frozen")
        for turn in ("first", "last")
    ]
    put(store, *both(0), *nothing)
    history, tonight = read(store, 1)
    assert tonight.failures.keys() == set(TESTS[:2]) and history == []
    put(store, *both(1))
    history, tonight = read(store, 1)
    assert [run.build.id for run in tonight.runs] == ["frozen-1"] * 2 and not tonight.failures
    assert [night.run for night in history] == ["r0000"]


def test_a_run_of_canaries_keeps_the_night_that_it_tells_of_in_the_history(store):
    put(store, *both(0))
    (night, _) = read(store, 0)[1].runs
    assert night.canary == CanaryOf(run="r0000", turn="first", lock="lock1")
    assert summarise(run_of(0, {TESTS[0]: 1.0})).canary is None
