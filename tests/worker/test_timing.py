"""The timed loop, driven by a model that only lets a clock go on: what is tested does not depend on the machine."""

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from torchbenchmark.worker import host_probe, timing
from torchbenchmark.worker.timing import Timed, collector_off, is_steady

HOST_PROBE = Path(host_probe.__file__)
SPEC = {"budget_s": 0.1, "warmup_cap_s": 0.5, "min_unit_s": 0.010, "min_samples": 3}


class Clock:
    """Stands for the module `time`, and goes on only when told."""

    def __init__(self) -> None:
        self.wall, self.cpu = 0.0, 0.0

    def perf_counter(self) -> float:
        return self.wall

    def process_time(self) -> float:
        return self.cpu

    def wait(self, seconds: float) -> None:
        self.wall += seconds

    def work(self, seconds: float) -> None:
        self.wall += seconds
        self.cpu += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(Counting, "clock", clock)
    return clock


class Counting:
    batch_size = 4
    clock = Clock()

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.calls = 0
        self.collector_was_on = []

    def invoke(self) -> tuple[torch.Tensor, ...]:
        self.calls += 1
        self.collector_was_on.append(gc.isenabled())
        self.clock.wait(self.seconds or 1e-6)
        return (torch.ones(1),)


def timed(model: Counting, **spec: float) -> Timed:
    return Timed(model, lambda: None, SPEC | spec)


def test_short_iterations_are_looped_until_a_unit_lasts_ten_milliseconds():
    loop = timed(Counting(2**-11))
    loop.warm_up()
    wall, _ = loop.unit()
    assert loop.inner_loops == 25, "the fewest that last a fifth more than 10 ms"
    assert wall == 25 * 2**-11


def test_long_iterations_are_not_looped():
    loop = timed(Counting(0.02))
    loop.warm_up()
    assert loop.inner_loops == 1


def test_samples_are_seconds_of_one_iteration_whatever_the_loop():
    loop = timed(Counting(2**-9))
    loop.warm_up()
    samples = loop.sample()
    walls, cpus = samples.walls, samples.cpus
    assert loop.inner_loops == 7
    assert walls == [2**-9] * 8, "8 units of 14 ms, of which the last begins within the budget of 0.1 s"
    assert cpus == [0.0] * 8, "waiting costs no CPU time"


def test_a_test_slower_than_the_budget_still_gives_the_least_number_of_samples():
    loop = timed(Counting(0.03), budget_s=0.001)
    walls = loop.sample().walls
    assert len(walls) == SPEC["min_samples"]


def test_the_collector_is_off_in_the_timed_part_and_on_again_after_it():
    model = Counting()
    loop = timed(model)
    loop.warm_up()
    loop.sample()
    assert not any(model.collector_was_on)
    assert gc.isenabled()


def test_the_collector_comes_back_when_the_model_raises():
    with pytest.raises(ValueError), collector_off():
        raise ValueError
    assert gc.isenabled()


def test_warm_up_counts_every_iteration():
    model = Counting(0.001)
    loop = timed(model)
    loop.warm_up()
    assert loop.warmup_iterations == model.calls + 1  # and the first batch, which ran before


def test_warm_up_ends_at_its_cap_where_the_model_never_gets_steady():
    class Slowing(Counting):
        def invoke(self):
            self.clock.wait(0.010 * 1.1**self.calls)
            return super().invoke()

    loop = timed(Slowing(), warmup_cap_s=0.3)
    loop.warm_up()
    assert not loop.steady


class Compiling(Counting):
    """Its iterations take these seconds, and the last of them for ever."""

    def __init__(self, *seconds: float) -> None:
        super().__init__()
        self.all_seconds = seconds

    def invoke(self):
        self.seconds = self.all_seconds[min(self.calls, len(self.all_seconds) - 1)]
        return super().invoke()


def test_what_an_iteration_compiles_at_the_cap_of_the_warm_up_is_not_timed():
    loop = timed(Compiling(3.6, 0.07))
    loop.warm_up()
    assert max(loop.sample().walls) == pytest.approx(0.07)


def test_a_jit_training_that_compiles_in_three_iterations_is_timed_after_them():
    model = Compiling(3.6, 3.8, 0.07)  # after the first: seen of a network trained for quantization, at a cap of 2 s
    loop = timed(model, backend="jit", warmup_cap_s=2.0)
    loop.warm_up()
    assert model.calls == 4, "two that compile, of like length, and two that do not"
    assert max(loop.sample().walls) == pytest.approx(0.07)


def test_short_iterations_after_a_long_one_at_the_cap_are_looped():
    loop = timed(Compiling(3.6, 0.001))
    loop.warm_up()
    assert loop.inner_loops == 13
    assert max(loop.sample().walls) == pytest.approx(0.001)


def test_a_slow_test_at_the_cap_is_warmed_up_by_no_more_than_two_units_that_are_alike():
    model = Counting(5.0)
    loop = timed(model)
    loop.warm_up()
    assert model.calls == 2 and not loop.steady


def test_a_test_whose_units_are_never_alike_is_timed_all_the_same():
    model = Compiling(*([0.1, 0.3] * 50))
    timed(model, warmup_cap_s=0.45).warm_up()
    assert model.calls == 3 + 10


def test_a_test_whose_units_last_long_and_are_never_alike_is_not_kept_waiting(clock):
    began = clock.wall
    timed(Compiling(*([60.0, 25.0] * 50)), warmup_cap_s=4.0).warm_up()
    assert clock.wall - began == 60.0, "that is beyond ten times the cap"


def test_every_unit_has_the_mean_of_the_probes_before_and_after_it():
    readings = iter(range(1000))
    loop = Timed(Counting(0.01), lambda: None, SPEC, lambda: float(next(readings)))
    samples = loop.sample()
    assert samples.probes == [unit + 0.5 for unit in range(len(samples.walls))]


def test_without_a_probe_there_are_no_readings():
    assert timed(Counting(0.01)).sample().probes is None


def test_the_time_of_the_probe_is_in_no_sample(clock):
    def slow_probe() -> float:
        clock.work(0.02)
        return 0.02

    samples = Timed(Counting(0.01), lambda: None, SPEC, slow_probe).sample()
    assert samples.cpus == pytest.approx([0.0] * len(samples.cpus))
    assert samples.walls == pytest.approx([0.01] * len(samples.walls))


def test_the_clock_of_the_loop_is_that_of_the_machine(monkeypatch):
    """The one test that lets real time pass."""
    monkeypatch.setattr(timing, "time", time)
    began = time.perf_counter()
    samples = timed(Counting(), budget_s=0.01).sample()
    assert 0 < sum(samples.walls) <= time.perf_counter() - began


def test_the_host_probe_owes_nothing_to_the_build():
    script = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('host_probe', {str(HOST_PROBE)!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "assert module.HostProbe().run() > 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("walls", "steady"),
    [
        ([1.0] * 19, False),
        ([1.0] * 20, True),
        ([1.02] * 10 + [1.0] * 10, False),
        ([1.005] * 10 + [1.0] * 10, True),
        ([1.0] * 18 + [9.0, 9.0], True),
        ([2.0 - 0.05 * step for step in range(20)], False),
    ],
    ids=["too few", "flat", "2 % drop", "half a percent", "two outliers", "slope"],
)
def test_steady_compares_the_trimmed_means_of_two_windows(walls, steady):
    assert is_steady(walls) is steady
