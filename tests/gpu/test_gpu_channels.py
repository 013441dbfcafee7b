"""On a machine with an NVIDIA GPU: what its channels say of work whose size is known, and how steady they are.

Figures are printed at the end of the test run.
"""

import itertools
import shutil
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from torchbenchmark.channels import CHANNELS
from torchbenchmark.isolation import ModelSource, Zygote
from torchbenchmark.nursery import ZYGOTE_SCRIPT
from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Status
from torchbenchmark.registry import load_suite
from torchbenchmark.runner import start_run
from torchbenchmark.worker.backends import BACKENDS
from torchbenchmark.worker.channels import profiler, timers
from torchbenchmark.worker.cuda_events import EventStopwatch
from torchbenchmark.worker.launch_probe import LaunchProbe
from torchbenchmark.worker.timing import Timed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs an NVIDIA GPU"),
]

SPEC = {
    "test": "eval",
    "device": "cuda",
    "backend": "eager",
    "precision": "fp32",
    "batch_size": None,
    "preset": "tiny",
    "training_mode": "",
    "threads": 1,
    "budget_s": 0.3,
    "warmup_cap_s": 1.0,
    "min_unit_s": 0.010,
    "min_samples": 3,
}
ON_THE_GPU = {name for name, kind in CHANNELS.items() if kind.side == "gpu"} | {"event_latency", "host_probe"}


class Quiet:
    """A reporter that says nothing."""

    def __getattr__(self, _: str):
        return lambda *_: None


class Work:
    """A model made of one function."""

    batch_size = 1

    def __init__(self, function) -> None:
        self.function = function

    def invoke(self) -> tuple[torch.Tensor, ...]:
        return (self.function(),)


def timed(function, **spec: float) -> Timed:
    loop = Timed(
        Work(function), torch.cuda.synchronize, SPEC | spec, probe=LaunchProbe().run, stopwatch=EventStopwatch()
    )
    loop.warm_up()
    return loop


@pytest.fixture(scope="module", autouse=True)
def context():
    """The device is initialised before anything calls the driver."""
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    request = RunRequest(suite=load_suite("smoke"), device="cuda", rounds=3, threads=1)
    return start_run(request, tmp_path_factory.mktemp("cuda") / "run.jsonl", Quiet())


def processes(run):
    return [(record.test, process) for record in run.records for process in record.processes]


def test_every_process_has_every_channel_of_the_gpu_and_no_note(run):
    assert {record.test: record.reason for record in run.records if record.status is not Status.OK} == {}
    assert {test: process.notes for test, process in processes(run) if process.notes} == {}
    assert {test: missing for test, one in processes(run) if (missing := ON_THE_GPU - set(one.channels))} == {}


def test_counts_and_sizes_are_identical_in_every_process(run):
    seen = defaultdict(set)
    for test, process in processes(run):
        for name, channel in process.channels.items():
            if CHANNELS[name].exact:
                seen[test, name].add(channel.median)
    assert {where: values for where, values in seen.items() if len(values) > 1} == {}


def test_every_process_says_how_the_gpu_was_meanwhile(run, record_property):
    states = [process.gpu for _, process in processes(run)]
    assert None not in states
    assert all(state.clock_sm_mhz[1] > 500 and state.temperature_c > 10 and state.power_w > 20 for state in states)
    readings = sorted(state.readings for state in states)
    clocks = sorted(clock for state in states for clock in state.clock_sm_mhz)
    reasons = sorted({reason for state in states for reason in state.throttled})
    record_property(
        "figure",
        f"readings a process {readings[0]} to {readings[-1]}, SM clock {clocks[0]} to {clocks[-1]} MHz, "
        f"throttled {reasons}",
    )


def test_kernel_time_of_a_process_is_steady(run, record_property):
    """DESIGN 3: 0.03 to 2.5 % between processes of one build, where wall latency has up to 42 %."""
    spreads = {}
    for channel in ("gpu_time", "latency"):
        spreads[channel] = {}
        for record in run.records:
            medians = [one.median for one in record.process_channels(channel)]
            spreads[channel][record.test] = (max(medians) - min(medians)) / statistics.median(medians)
    for channel, by_test in spreads.items():
        text = ", ".join(f"{test} {spread:.2%}" for test, spread in sorted(by_test.items()))
        record_property("figure", f"{channel}, largest less smallest of 3 processes over their median: {text}")
    assert statistics.median(spreads["gpu_time"].values()) < 0.02


def test_kernels_of_an_iteration_fit_into_it(run):
    for test, process in processes(run):
        busy, kernels = process.channels["gpu_busy"].median, process.channels["gpu_time"].median
        assert 0 < busy <= kernels * 1.0001, test
        # Kernels run a little slower after a pause than back to back, so those of the profiled section may.
        assert busy <= process.channels["event_latency"].median * 1.1, test
        assert process.channels["event_latency"].median <= process.channels["latency"].median * 1.05, test


def test_the_probe_takes_tenths_of_a_millisecond_and_tells_the_speed_of_the_host(run, record_property):
    medians = [process.channels["host_probe"].median for _, process in processes(run)]
    record_property("figure", f"host probe, 100 launches: {min(medians) * 1e3:.3f} to {max(medians) * 1e3:.3f} ms")
    assert min(medians) > 2e-5 and max(medians) < 2e-2


def test_the_profiled_section_takes_at_most_a_fifth_of_a_childs_time(tmp_path, record_property):
    suite = load_suite("smoke")
    request = RunRequest(suite=suite, device="cuda", rounds=1, threads=1, selection=(suite.models[0],))
    moments: list[tuple[str, float]] = []
    kept = Zygote.measure

    def watching(self, *arguments, on_stage=lambda _: None, **options):
        def note(stage: str) -> None:
            moments.append((stage, time.monotonic()))
            on_stage(stage)

        moments.append(("requested", time.monotonic()))
        return kept(self, *arguments, on_stage=note, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Zygote, "measure", watching)
        start_run(request, tmp_path / "run.jsonl", Quiet())
    spent = defaultdict(float)
    for (stage, began), (after, ended) in itertools.pairwise(moments):
        if after != "requested":
            spent[stage] += ended - began
    whole = sum(spent.values())
    record_property("figure", "seconds by stage: " + ", ".join(f"{name} {took:.2f}" for name, took in spent.items()))
    assert spent["profiled section"] <= 0.2 * whole


def test_kernel_time_of_one_long_product_is_what_cuda_events_say(record_property):
    left = torch.randn(8192, 8192, device="cuda")
    loop = timed(lambda: left @ left)
    between_events = statistics.median(timers.measure(loop)["event_latency"])
    kernels = profiler.measure(loop)
    assert kernels["launches"] == [1.0] * len(kernels["launches"])
    record_property(
        "figure",
        f"product of 8192: kernel {statistics.median(kernels['gpu_time']):.6f} s, events {between_events:.6f} s",
    )
    assert statistics.median(kernels["gpu_time"]) == pytest.approx(between_events, rel=0.05)


def test_launches_are_those_of_the_model_and_never_the_probes():
    tensor = torch.ones(1000, device="cuda")
    loop = timed(lambda: tensor.add(1).mul(2).sub(3))
    timers.measure(loop)
    assert set(profiler.measure(loop)["launches"]) == {3.0}


def test_copies_stand_apart_from_kernels():
    tensor, target = torch.ones(2**22, device="cuda"), torch.empty(2**22, device="cuda")

    def work() -> torch.Tensor:
        target.copy_(tensor)
        return target.cpu().sum() + tensor.add(1)[0].cpu()

    measured = profiler.measure(timed(work))
    assert min(measured["gpu_copies"]) > 16e6 / 100e9, "16 MB to the host, slower than any bus is"
    assert set(measured["launches"]) == {1.0}


def test_two_streams_at_once_have_a_union_below_their_sum():
    other = torch.cuda.Stream()
    small = torch.randn(256, 256, device="cuda")

    def work() -> torch.Tensor:
        other.wait_stream(torch.cuda.current_stream())
        torch.cuda._sleep(2_000_000)
        with torch.cuda.stream(other):
            torch.cuda._sleep(2_000_000)
        torch.cuda.current_stream().wait_stream(other)
        return small + 1

    measured = profiler.measure(timed(work))
    assert set(measured["launches"]) == {3.0}
    assert statistics.median(measured["gpu_busy"]) < 0.7 * statistics.median(measured["gpu_time"])


def test_iterations_that_launch_differently_are_told_apart():
    tensor = torch.ones(1000, device="cuda")
    loop = timed(lambda: tensor.add(1))
    calls = iter(range(10_000))

    def work() -> torch.Tensor:
        for _ in range(1 + next(calls) % 2):
            tensor.add(1)
        return tensor

    loop.model = Work(work)
    counts = profiler.measure(loop)["launches"]
    assert sorted(set(counts)) == [1.0, 2.0]
    assert all(before != after for before, after in itertools.pairwise(counts))


def test_the_kernels_of_a_replayed_cuda_graph_are_seen():
    tensor = torch.ones(1000, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        tensor.mul_(1)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            tensor.mul_(1)

    def work() -> torch.Tensor:
        graph.replay()
        return tensor

    assert set(profiler.measure(timed(work))["launches"]) == {4.0}


MODEL = """
import torch
from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    PRESETS = {"tiny": Preset(2, 2, {})}

    def setup(self):
        self.module = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()).to(self.device)
        self.example_inputs = (torch.ones(64, 512, device=self.device),)
"""
OWN_PROFILER = """
        self.own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        self.own.__enter__()
"""
# CUPTI has one subscriber at a time, as with a debugger or a system profiler around the process.
OTHER_SUBSCRIBER = """
        import ctypes, re
        from pathlib import Path
        path = re.search(r"/\\S*libcupti\\S*", Path("/proc/self/maps").read_text())[0]
        self.cupti, self.subscriber = ctypes.CDLL(path), ctypes.c_void_p()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
        self.callback = kind(lambda *_: None)
        assert self.cupti.cuptiSubscribe(ctypes.byref(self.subscriber), self.callback, None) == 0
"""


def measured_in_a_child(folder: Path, source: str, **spec: object):
    (folder / "probe").mkdir(parents=True)
    (folder / "probe" / "__init__.py").write_text(source)
    model = ModelSource("probe", folder / "probe")
    with Zygote(Path(sys.executable), ZYGOTE_SCRIPT, "z", folder, {}) as zygote:
        zygote.preload([model])
        zygote.wait_ready()
        return zygote.measure(model, SPEC | spec, start_method="fork", timeout_s=300, memory_limit=None)


@pytest.mark.parametrize("busy", [OWN_PROFILER, OTHER_SUBSCRIBER], ids=["own profiler", "other subscriber"])
def test_a_busy_profiler_costs_its_own_channels_at_most_and_says_so(tmp_path, busy, record_property):
    outcome = measured_in_a_child(tmp_path, MODEL + busy)
    assert outcome.status == "ok", outcome
    channels = set(outcome.result["channels"])
    record_property("figure", f"a model that holds the profiler: {outcome.result['notes'] or 'measured all the same'}")
    assert {"latency", "event_latency", "gpu_memory", "operators"} <= channels
    refused = any(note.startswith("profiled section: not measured, NoGpuActivity") for note in outcome.result["notes"])
    assert refused == ("gpu_time" not in channels)
    if not refused:
        usual = measured_in_a_child(tmp_path / "usual", MODEL)
        assert outcome.result["channels"]["launches"]["median"] == usual.result["channels"]["launches"]["median"]


def test_gpu_memory_of_a_known_allocation_is_exact(tmp_path):
    outcome = measured_in_a_child(tmp_path, MODEL)
    weights, batch = 512 * 512 * 4 + 512 * 4, 64 * 512 * 4
    peak = outcome.result["channels"]["gpu_memory"]["median"]
    # Weights, input, two activations, and what the allocator rounds up or the libraries hold as workspace.
    assert weights + 3 * batch <= peak <= weights + 3 * batch + 64 * 2**20
    assert outcome.result["channels"]["gpu_memory_cold"]["median"] >= peak - batch
    assert outcome.result["channels"]["gpu_memory_reserved"]["median"] >= peak


def compiled_in_children(folder: Path, backend: str, modes: tuple[str, ...]) -> dict[str, dict]:
    """The results of children that compile in these modes, one after the other, by mode."""
    if backend not in BACKENDS:
        pytest.skip(f"this harness has no backend {backend}")
    (folder / "probe").mkdir()
    (folder / "probe" / "__init__.py").write_text(MODEL)
    model, results = ModelSource("probe", folder / "probe"), {}
    with Zygote(Path(sys.executable), ZYGOTE_SCRIPT, "z", folder, {}) as zygote:
        zygote.preload([model])
        zygote.wait_ready()
        for mode in modes:
            spec = SPEC | {"backend": backend, "compile_cache": {"mode": mode, "folder": str(folder / "caches")}}
            outcome = zygote.measure(model, spec, start_method="fork", timeout_s=500, memory_limit=None)
            assert outcome.status == "ok", outcome
            results[mode] = outcome.result
    return results


def medians(result: dict) -> dict[str, float]:
    return {name: channel["median"] for name, channel in result["channels"].items()}


def test_inductor_compiles_cold_once_and_then_warm_and_its_kernels_are_measured(tmp_path, record_property):
    results = compiled_in_children(tmp_path, "inductor", ("cold", "fill", "warm"))
    cold, fill, warm = (medians(results[mode]) for mode in ("cold", "fill", "warm"))
    record_property(
        "figure", f"inductor: cold {cold['compile_time_cold']:.2f} s, warm {warm['compile_time_warm']:.2f} s"
    )
    assert warm["compile_time_warm"] < cold["compile_time_cold"]
    assert not {name for name in fill if name.startswith("compile_time")}
    for counted in ("graphs", "graph_breaks", "recompiles", "cudagraph_skips", "launches"):
        assert cold[counted] == fill[counted] == warm[counted], counted
    assert (cold["graphs"], cold["graph_breaks"], cold["recompiles"]) == (1, 0, 0)
    assert cold["gpu_time"] > 0
    assert [result["notes"] for result in results.values()] == [[], [], []]


@pytest.mark.parametrize("backend", ["inductor_cudagraphs", "cudagraphs"])
def test_what_a_compiled_cuda_graph_replays_is_measured(tmp_path, backend, record_property):
    result = compiled_in_children(tmp_path, backend, ("cold",))["cold"]
    channels = medians(result)
    record_property("figure", f"{backend}: {channels['launches']:g} launches, {channels['gpu_time'] * 1e6:.1f} us")
    assert channels["launches"] >= 1 and channels["gpu_time"] > 0
    assert channels["cudagraph_skips"] == 0
    assert result["notes"] == []
