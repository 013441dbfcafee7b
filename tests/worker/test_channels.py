"""What the channels count, against workloads whose numbers are known by hand."""

import itertools
import mmap
import subprocess
import sys

import pytest
import torch

from torchbenchmark.channels import CHANNELS
from torchbenchmark.worker.channels import SECTIONS, dispatch, memory, timers
from torchbenchmark.worker.host_probe import SLOPE, HostProbe, at_reference_speed
from torchbenchmark.worker.timing import Timed

SPEC = {
    "device": "cpu",
    "backend": "eager",
    "budget_s": 0.02,
    "warmup_cap_s": 0.02,
    "min_unit_s": 0.001,
    "min_samples": 3,
}


class Product:
    """Two matrix products and one sum: 2*2*64*32*16 + ... floating-point operations."""

    batch_size = 64

    def __init__(self) -> None:
        self.a = torch.ones(64, 32)
        self.b = torch.ones(32, 16, requires_grad=True)

    def invoke(self) -> tuple[torch.Tensor, ...]:
        return ((self.a @ self.b).sum(),)


class Training(Product):
    def invoke(self) -> tuple[torch.Tensor, ...]:
        loss = super().invoke()[0]
        loss.backward()
        return (loss.detach(),)


def count(model: Product) -> dict[str, list[float]]:
    return dispatch.measure(Timed(model, lambda: None, SPEC))


def test_operators_and_flops_of_a_forward_pass_are_exact():
    counted = count(Product())
    assert counted == {"operators": [2.0], "flops": [2.0 * 64 * 32 * 16]}


def test_the_backward_pass_is_counted_too():
    forward, training = count(Product()), count(Training())
    assert training["flops"][0] == 2 * forward["flops"][0]  # the gradient of b alone: a needs none
    assert training["operators"][0] > forward["operators"][0]


def test_counting_twice_gives_the_same():
    model = Training()
    count(model)  # the first backward pass makes the gradient, later ones add to it
    assert count(model) == count(model)


def test_nothing_is_counted_of_a_compiled_module_which_torch_would_run_uncompiled_for_it():
    compiled = Product()
    compiled.module = torch.compile(torch.nn.Linear(2, 2), backend="aot_eager")
    assert count(compiled) == {}
    assert set(count(Product())) == {"operators", "flops"}


def test_every_section_gives_channels_that_the_table_knows():
    loop = Timed(Product(), lambda: None, SPEC, HostProbe().run)
    given = [set(section.measure(loop)) for section in SECTIONS if section.applies(SPEC)]
    on_the_gpu = {"event_latency", *(name for name, kind in CHANNELS.items() if kind.side == "gpu")}
    of_compiled_tests = {
        "compile_time_cold", "compile_time_warm", "graphs", "graph_breaks", "recompiles", "cudagraph_skips",
    }  # fmt: skip
    assert set().union(*given) == set(CHANNELS) - {"first_batch"} - on_the_gpu - of_compiled_tests
    assert sum(map(len, given)) == len(set().union(*given)), "two sections give the same channel"


def test_throughput_is_batch_size_over_latency():
    samples = SECTIONS[0].measure(Timed(Product(), lambda: None, SPEC))
    assert samples["throughput"] == [64 / wall for wall in samples["latency"]]


def test_adjusted_cpu_time_follows_the_probe_unit_by_unit():
    readings = itertools.cycle([0.0005, 0.0015])  # a millisecond in the mean: the reference speed
    samples = SECTIONS[0].measure(Timed(Product(), lambda: None, SPEC, lambda: next(readings)))
    assert samples["host_probe"] == pytest.approx([0.001] * len(samples["cpu_time"]))
    assert samples["cpu_time_adjusted"] == pytest.approx(samples["cpu_time"])


def test_a_host_at_half_its_speed_is_adjusted_by_the_slope():
    assert at_reference_speed(0.003, 0.001) == 0.003
    assert at_reference_speed(0.003, 0.002) == pytest.approx(0.003 / 2**SLOPE)


def test_without_a_probe_its_channels_are_absent():
    samples = SECTIONS[0].measure(Timed(Product(), lambda: None, SPEC))
    assert set(samples) == {"latency", "cpu_time", "throughput"}


class Watch:
    """A stopwatch that reads twice what the unit before it read."""

    def __init__(self) -> None:
        self.units, self.running = 0, False

    def start(self) -> None:
        assert not self.running
        self.running = True

    def stop(self) -> None:
        assert self.running
        self.running, self.units = False, self.units + 1

    def seconds(self) -> float:
        assert not self.running, "read before the unit was over"
        return float(self.units)


def test_event_latency_is_read_unit_by_unit_for_one_iteration():
    timed = Timed(Product(), lambda: None, SPEC, stopwatch=Watch())
    timed.inner_loops = 4
    samples = timers.measure(timed)
    assert samples["event_latency"] == [unit / 4 for unit in range(1, len(samples["latency"]) + 1)]


def test_the_probe_of_a_gpu_test_adjusts_nothing():
    """Its speed has no reference: it is a covariate."""
    samples = timers.measure(Timed(Product(), lambda: None, SPEC | {"device": "cuda"}, lambda: 0.0003))
    assert samples["host_probe"] == pytest.approx([0.0003] * len(samples["latency"]))
    assert "cpu_time_adjusted" not in samples


class Allocator:
    """Stands for torch.cuda's statistics: a peak since the last reset."""

    def __init__(self, monkeypatch) -> None:
        self.peak, self.held = 900, 2000
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: self.peak)
        monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: self.held)
        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", self.reset)

    def reset(self) -> None:
        self.peak, self.held = 100, 1500


def test_warm_gpu_memory_is_the_peak_of_one_iteration_of_its_own(monkeypatch):
    allocator = Allocator(monkeypatch)

    class Allocating(Product):
        def invoke(self):
            allocator.peak += 50
            return super().invoke()

    measured = memory.measure(Timed(Allocating(), lambda: None, SPEC | {"device": "cuda"}))
    assert measured["gpu_memory"] == [150.0], "what was held, and one iteration"
    assert measured["gpu_memory_reserved"] == [1500.0]
    assert measured["cpu_memory"][0] > 0


READER = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    print(sum(mapped[page] for page in range(0, len(mapped), mmap.PAGESIZE)), flush=True)
    sys.stdin.read()
"""


def test_memory_is_the_same_beside_a_process_that_maps_the_same_files(tmp_path):
    """As any that runs the same libraries does: a worker on the next GPU, the other side of a comparison."""
    library = tmp_path / "library"
    library.write_bytes(bytes(64 * 2**20))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[page] for page in range(0, len(mapped), mmap.PAGESIZE)) == 0
        alone = memory._host_peak()["cpu_memory"][0]
        command = [sys.executable, "-c", READER, str(library)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as neighbour:
            neighbour.stdout.readline()
            beside = memory._host_peak()["cpu_memory"][0]
            neighbour.communicate()
    assert beside == pytest.approx(alone, abs=4 * 2**20)


def test_cold_gpu_memory_is_the_peak_until_now_and_only_on_a_gpu(monkeypatch):
    Allocator(monkeypatch)
    assert memory.cold_gpu_peaks("cuda") == {"gpu_memory_cold": [900.0], "gpu_memory_reserved_cold": [2000.0]}
    assert memory.cold_gpu_peaks("cpu") == {}


def test_only_counts_and_steady_sizes_are_compared_exactly():
    assert {name for name, kind in CHANNELS.items() if kind.exact} == {
        "operators", "flops", "launches", "gpu_memory", "gpu_memory_reserved",
        "graphs", "graph_breaks", "recompiles", "cudagraph_skips",
    }  # fmt: skip
