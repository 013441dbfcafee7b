"""The noise table from pairs whose noise was planted."""

import json
import math
from datetime import UTC, datetime

import numpy
import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.noise import AaPair, noise_of
from torchbenchmark.paired.noise_table import NoiseTable, default_path, find_noise_table, read_noise_table
from torchbenchmark.paired.values import ProcessValues

TESTS = [f"test_eval[m{index}-cuda-eager]" for index in range(6)]


def study(seed, rounds, processes, *, zygote, process, iteration=0.0, probe=0.0, slope=0.0, extra=()):
    """Pairs of `TESTS` with planted standard deviations of logarithms."""
    generator = numpy.random.default_rng(seed)

    def values(name, level):
        host = generator.normal(0, probe)
        centre = level + generator.normal(0, process) + slope * host
        samples = tuple(numpy.exp(centre + generator.normal(0, iteration, 15)) * 0.01)
        return ProcessValues(
            name,
            {"gpu_time": float(numpy.median(samples)), "latency": float(numpy.median(samples)),
             "host_probe": 0.001 * math.exp(host), **dict(extra)},
            {"gpu_time": samples, "latency": samples, "host_probe": (0.001 * math.exp(host),)}
            | {name: (value,) for name, value in dict(extra).items()},
        )  # fmt: skip

    pairs = []
    for test in TESTS:
        for number in range(rounds):
            levels = generator.normal(0, zygote, 2)
            for index in range(processes):
                sides = [values(f"{side}{number}", level) for side, level in zip("bh", levels, strict=True)]
                pairs.append(AaPair(test, number, index, *sides))
    return pairs


def channel(rows, name):
    return next(one for one in rows.channels if one.channel == name)


def test_the_levels_and_the_variance_of_a_pair_are_those_that_were_planted():
    rows = noise_of(study(1, 40, 3, zygote=0.01, process=0.005, iteration=0.004), "cpu")
    mine = [row for row in rows.series if row.channel == "gpu_time"]
    assert len(mine) == 6
    assert numpy.mean([row.sd_zygote for row in mine]) == pytest.approx(0.01, rel=0.15)
    assert numpy.mean([row.sd_process for row in mine]) == pytest.approx(0.005, rel=0.15)
    assert numpy.mean([row.sd_iteration for row in mine]) == pytest.approx(0.004, rel=0.1)
    of_a_pair = math.sqrt(2 * (0.01**2 + 0.005**2))
    assert channel(rows, "gpu_time").pair_sd == pytest.approx(of_a_pair, rel=0.1)
    between_zygotes = math.sqrt(2 * (0.01**2 + 0.005**2 / 3))
    assert channel(rows, "gpu_time").margin == pytest.approx(1.96 * between_zygotes, rel=0.15)
    assert channel(rows, "gpu_time").degrees > 15, "all tests have one variance"


def test_a_channel_that_follows_the_host_is_told_with_its_slope_and_what_is_left():
    pairs = study(2, 30, 1, zygote=0.0, process=0.01, probe=0.2, slope=0.8)
    rows = noise_of(pairs, "cpu")
    assert channel(rows, "latency").slope == pytest.approx(0.8, abs=0.05)
    assert channel(rows, "latency").pair_sd == pytest.approx(0.01 * math.sqrt(2), rel=0.2)
    assert channel(rows, "gpu_time").slope is None
    assert channel(rows, "gpu_time").pair_sd > 10 * channel(rows, "latency").pair_sd


def test_on_a_gpu_a_test_follows_the_host_as_far_as_it_waits_for_it():
    waiting = study(2, 30, 1, zygote=0.0, process=0.01, probe=0.2, slope=1.5, extra={"gpu_busy": 0.001}.items())
    rows = noise_of(waiting, "cuda")
    assert channel(rows, "latency").slope == pytest.approx(1.5, abs=0.05)
    assert channel(rows, "latency").pair_sd == pytest.approx(0.01 * math.sqrt(2), rel=0.2)
    for busy in ({"gpu_busy": 0.02}, {}):  # the GPU sets the time; nothing tells
        steady = study(2, 30, 1, zygote=0.0, process=0.001, probe=0.2, slope=0.0, extra=busy.items())
        assert channel(noise_of(steady, "cuda"), "latency").pair_sd == pytest.approx(0.001 * math.sqrt(2), rel=0.2)


def test_the_slope_of_few_pairs_or_a_steep_one_is_what_is_known_of_the_device():
    """A slope that is half too steep costs four times the width (docs/statistics.md)."""
    waits = {"gpu_busy": 0.001}.items()
    few = study(2, 3, 1, zygote=0.0, process=0.01, probe=0.2, slope=0.8, extra=waits)[:3]
    steep = study(2, 30, 1, zygote=0.0, process=0.01, probe=0.2, slope=3.0, extra=waits)
    slopes = {
        device: [channel(noise_of(pairs, device), "latency").slope for pairs in (few, steep)]
        for device in ("cpu", "cuda")
    }
    assert slopes == {"cpu": [0.77, 0.95], "cuda": [1.2, 2.0]}


def test_a_count_that_was_not_the_same_every_time_is_listed():
    steady = noise_of(study(3, 4, 1, zygote=0.01, process=0.01, extra={"launches": 7.0}.items()), "cpu")
    assert steady.not_exact == ()
    pairs = study(3, 4, 1, zygote=0.01, process=0.01, extra={"launches": 7.0}.items())
    odd = pairs[0]
    other = ProcessValues(odd.other.zygote, {**odd.other.locations, "launches": 8.0}, odd.other.samples)
    (exception,) = noise_of([AaPair(odd.test, odd.round, odd.index, odd.one, other), *pairs[1:]], "cpu").not_exact
    assert (exception.test, exception.channel, exception.values) == (TESTS[0], "launches", (7.0, 8.0))


def test_one_round_makes_no_table():
    assert noise_of(study(4, 1, 3, zygote=0.01, process=0.01), "cpu").series == ()


def table(rows):
    return NoiseTable(
        machine_class="cuda-x1",
        device="cuda",
        made="2026-11-28T00:00:00Z",
        build="b",
        environment="e",
        harness="h",
        rounds=4,
        processes=1,
        series=rows.series,
        channels=rows.channels,
    )


def test_a_table_is_read_as_it_was_written_and_only_for_its_own_class(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = noise_of(study(5, 4, 1, zygote=0.01, process=0.01), "cpu")
    path = tmp_path / "torchbench" / "noise" / "cuda-x1.json"
    assert find_noise_table(None, "cuda-x1") is None
    table(rows).write(path)
    assert find_noise_table(None, "cuda-x1") == table(rows) == read_noise_table(path)
    with pytest.raises(BenchmarkError, match="is the A/A table of class cuda-x1, and this machine is cuda-x2"):
        find_noise_table(path, "cuda-x2")
    path.write_text("{}")
    with pytest.raises(BenchmarkError, match=r"cuda-x1\.json: .*make it again with `torchbench doctor --aa`"):
        read_noise_table(path)
    for damaged in ("", "{", "[" * 100_000, '{"class": "\\u001b]0;"}'):
        path.write_text(damaged)
        with pytest.raises(BenchmarkError, match=r"cuda-x1\.json: "):
            read_noise_table(path)
    with pytest.raises(BenchmarkError, match="cannot be read"):
        find_noise_table(tmp_path / "none.json", "cuda-x1")


def of_class(machine_class, made_on=28):
    """A table of the CPU times and kernel times of that class."""
    made = table(noise_of(study(5, 4, 1, zygote=0.01, process=0.01), "cuda"))
    return made.model_copy(update={"machine_class": machine_class, "made": datetime(2026, 11, made_on, tzinfo=UTC)})


def test_without_a_table_of_its_own_a_class_takes_from_the_same_gpu_with_other_threads_what_is_the_gpus(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, day in (
        ("cuda-h100-x1-t8", 27),
        ("cuda-h100-x1-t4", 28),
        ("cuda-a100-x1-t2", 29),
        ("cpu-h100-x1-t2", 29),
    ):
        of_class(name, day).write(default_path(name))
    default_path("cuda-h100-x1-t16").write_text("{}")
    known = find_noise_table(None, "cuda-h100-x1-t2")
    assert [row.channel for row in known.channels] == ["gpu_time"]
    assert {row.channel for row in known.series} == {"gpu_time"}
    assert known.pair_variance(TESTS[0], "gpu_time") is not None
    assert known.pair_variance(TESTS[0], "latency") is None and known.slope("latency") is None
    assert known.title.startswith("A/A table of cuda-h100-x1-t4, 2026-11-28")
    assert known.title.endswith("of other CPU threads, so that only what the GPU sets is taken from it: gpu_time")
    for name in ("cuda-h100-x2-t2", "cuda-h200-x1-t2", "cpu-h100-x1-t8"):
        assert find_noise_table(None, name) is None, "of other GPUs, or of a CPU, whose threads are its speed"
    own = of_class("cuda-h100-x1-t2", 1)
    own.write(default_path("cuda-h100-x1-t2"))
    assert find_noise_table(None, "cuda-h100-x1-t2") == own


@pytest.mark.parametrize(
    "broken", [{"pair_sd": 1e200}, {"pair_sd": -1}, {"slope": 1e308}, {"slope": -2.0}, {"slope": float("nan")}]
)
def test_a_table_that_no_study_can_have_made_is_refused(tmp_path, broken):
    path = tmp_path / "table.json"
    table(noise_of(study(5, 4, 1, zygote=0.01, process=0.01), "cpu")).write(path)
    content = json.loads(path.read_text())
    content["channels"][0] |= broken
    path.write_text(json.dumps(content))
    with pytest.raises(BenchmarkError, match=rf"table\.json: .*{next(iter(broken))}"):
        read_noise_table(path)


def test_a_spread_finer_than_any_clock_is_no_knowledge():
    rows = noise_of(study(5, 4, 1, zygote=0.01, process=0.01), "cpu")
    fine = table(rows).model_copy(
        update={"channels": (channel(rows, "latency").model_copy(update={"pair_sd": 1e-200}),)}
    )
    assert fine.pair_variance(TESTS[0], "latency") is None
