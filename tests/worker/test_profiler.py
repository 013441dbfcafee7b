"""From what the profiler recorded to numbers: made-up activities, as CUPTI would give them."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from torchbenchmark.worker.channels import profiler
from torchbenchmark.worker.channels.profiler import (
    Activity,
    LogTail,
    NoGpuActivity,
    activity_of,
    iterations_for,
    per_iteration,
    split,
    union_ns,
)
from torchbenchmark.worker.timing import Timed

SPEC = {"device": "cuda", "budget_s": 0.5, "warmup_cap_s": 0.02, "min_unit_s": 0.001, "min_samples": 3}
EPOCH = 1_795_861_126_000_000_000  # the profiler counts nanoseconds since 1970, as the host does
PERIOD = 1_000_000
LENGTH = 700_000  # of an iteration; the rest of its period is the pause


def kernel(name: str, start: int, duration: int, stream: int = 7) -> Activity:
    return Activity(name, EPOCH + start, duration, stream)


def copy(start: int, duration: int) -> Activity:
    return Activity("Memcpy HtoD (Pageable -> Device)", EPOCH + start, duration, 7, is_copy=True)


def iteration(number: int) -> list[Activity]:
    """A copy, two kernels one after the other, and one on another stream that overlaps the second."""
    at = number * PERIOD
    return [
        copy(at + 10_000, 500),
        kernel("gemm", at + 20_000, 3_000),
        kernel("relu", at + 24_000, 1_000),
        kernel("reduce", at + 24_500, 2_000, stream=20),
    ]


def marks(count: int, offset: int = 0) -> list[tuple[int, int]]:
    return [(EPOCH + offset + n * PERIOD, EPOCH + offset + n * PERIOD + LENGTH) for n in range(count)]


def test_kernels_are_summed_their_union_is_taken_over_streams_and_copies_stand_apart():
    activities = [one for number in range(3) for one in iteration(number)]
    assert per_iteration(activities, marks(3)) == {
        "gpu_time": pytest.approx([6e-6] * 3),
        "gpu_busy": pytest.approx([5.5e-6] * 3),
        "gpu_copies": pytest.approx([5e-7] * 3),
        "launches": [3.0] * 3,
    }


def test_the_order_in_which_the_profiler_tells_does_not_matter():
    activities = [one for number in range(4) for one in iteration(number)]
    assert per_iteration(activities[::-1], marks(4)) == per_iteration(activities, marks(4))


def test_an_iteration_without_copies_has_none_rather_than_no_value():
    assert per_iteration([kernel("gemm", 5, 10)], marks(1))["gpu_copies"] == [0.0]


def test_equal_iterations_are_told_apart_without_a_clock():
    activities = [one for number in range(5) for one in iteration(number)]
    hours_off = marks(5, offset=3_600_000_000_000)
    assert split(activities, hours_off) == [iteration(number) for number in range(5)]


def test_iterations_that_differ_are_told_apart_by_the_hosts_time():
    second = [*iteration(1), kernel("rehash", PERIOD + 30_000, 100), kernel("rehash", PERIOD + 31_000, 100)]
    parts = [iteration(0), second, iteration(2)]
    assert split([one for part in parts for one in part], marks(3)) == parts


def test_as_many_activities_by_chance_are_not_taken_for_equal_iterations():
    """12 activities in 3 iterations, but 3, 5 and 4 of them."""
    parts = [iteration(0)[:3], [*iteration(1), kernel("rehash", PERIOD + 30_000, 100)], iteration(2)]
    activities = [one for part in parts for one in part]
    assert len(activities) == 12
    assert split(activities, marks(3)) == parts


@pytest.mark.parametrize("offset", [-90_000, 90_000])
def test_clocks_that_differ_by_less_than_half_the_pause_do_no_harm(offset):
    parts = [iteration(0), iteration(1)[:2], iteration(2)]
    assert split([one for part in parts for one in part], marks(3, offset)) == parts


def test_clocks_that_disagree_are_an_error_and_no_numbers():
    activities = [*iteration(0), *iteration(1)[:2]]
    with pytest.raises(NoGpuActivity, match="the clocks of GPU and host disagree"):
        split(activities, marks(2, offset=500_000_000))


def test_an_iteration_that_cupti_dropped_is_an_error_and_no_zero():
    with pytest.raises(NoGpuActivity, match="in some of the iterations only"):
        split([*iteration(0), *iteration(2)[:3]], marks(3))


def test_the_union_counts_no_moment_twice():
    assert union_ns([]) == 0
    nested = [kernel("long", 0, 100), kernel("inside", 10, 20, 9), kernel("across", 90, 30, 9), kernel("later", 200, 5)]
    assert union_ns(nested) == 125


@pytest.mark.parametrize(
    ("iteration_s", "iterations"),
    [(0.2, 5), (0.01, 15), (0.0001, 30), (0.0, 30)],
    ids=["slow", "usual", "quick", "not timed"],
)
def test_the_number_of_profiled_iterations_follows_the_budget_within_limits(iteration_s, iterations):
    timed = Timed(object(), lambda: None, SPEC)
    timed.iteration_s = iteration_s
    assert iterations_for(timed) == iterations


@dataclass
class Event:
    """What torch's profiler hands out, as of 2.9."""

    given_name: str
    device: torch.autograd.DeviceType = torch.autograd.DeviceType.CUDA
    annotation: bool = False

    def name(self):
        return self.given_name

    def device_type(self):
        return self.device

    def is_user_annotation(self):
        return self.annotation

    def start_ns(self):
        return EPOCH

    def duration_ns(self):
        return 42

    def device_resource_id(self):
        return 7


class NewerEvent(Event):
    """As of 2.13 an event also says what kind of activity it is."""

    kind = "kernel"

    def activity_type(self):
        return self.kind


@pytest.mark.parametrize("kind", [Event, NewerEvent])
def test_a_kernel_keeps_its_name_times_and_stream(kind):
    found = activity_of(kind("void at::native::vectorized_elementwise_kernel<4>"))
    assert found == Activity("void at::native::vectorized_elementwise_kernel<4>", EPOCH, 42, 7)


def test_copies_are_known_by_their_name_and_in_newer_torch_by_their_kind():
    assert activity_of(Event("Memcpy DtoD (Device -> Device)")).is_copy
    assert activity_of(Event("Memset (Device)")).is_copy
    newer = NewerEvent("a name to come")
    newer.kind = "gpu_memcpy"
    assert activity_of(newer).is_copy


def test_a_kernel_of_the_models_own_that_copies_is_a_kernel():
    assert not activity_of(Event("void memcpy_rows<float>(float*)")).is_copy
    assert not activity_of(Event("MemcpyLike")).is_copy


def test_calls_on_the_host_annotations_and_waits_are_not_gpu_work():
    waiting = NewerEvent("Stream Wait Event")
    waiting.kind = "cuda_sync"
    labelled = NewerEvent("## Call CompiledFxGraph ##")
    labelled.kind = "gpu_user_annotation"
    assert activity_of(Event("cudaLaunchKernel", device=torch.autograd.DeviceType.CPU)) is None
    assert activity_of(replace(Event("Optimizer.step#SGD.step"), annotation=True)) is None
    assert activity_of(waiting) is None
    assert activity_of(labelled) is None


class Multiplying:
    batch_size = 1

    def invoke(self):
        return (torch.ones(2) * 2,)


def test_a_build_without_a_profiler_for_the_gpu_is_told_as_such(monkeypatch):
    monkeypatch.setattr(torch.profiler, "supported_activities", lambda: {torch.profiler.ProfilerActivity.CPU})
    with pytest.raises(NoGpuActivity, match="this build of torch has no profiler for the GPU"):
        profiler.measure(Timed(Multiplying(), lambda: None, SPEC))


@pytest.fixture
def refused(monkeypatch):
    """A GPU build whose profiler comes back with nothing, whatever was run."""
    monkeypatch.setattr(
        torch.profiler, "supported_activities", lambda: set(torch.profiler.ProfilerActivity.__members__.values())
    )
    monkeypatch.setattr(profiler, "_profile", lambda *_: ([], marks(5)))


@pytest.fixture
def log(tmp_path):
    """Standard error in a file, as in a child."""
    path = tmp_path / "child.log"
    kept = os.dup(2)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    yield path
    os.dup2(kept, 2)
    os.close(kept)


def test_what_cupti_said_when_it_refused_is_the_reason(refused, log, monkeypatch):
    os.write(2, b"CUPTI_ERROR of an earlier section\n")

    def refusing(*_):
        os.write(2, b"loading\nWARNING: CuptiActivityApi.cpp: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)\n")
        return [], marks(5)

    monkeypatch.setattr(profiler, "_profile", refusing)
    with pytest.raises(NoGpuActivity) as refusal:
        profiler.measure(Timed(Multiplying(), lambda: None, SPEC))
    assert str(refusal.value).startswith("the profiler recorded no GPU activity: WARNING: CuptiActivityApi.cpp")
    assert "INSUFFICIENT_PRIVILEGES" in str(refusal.value)
    assert "loading" not in str(refusal.value)
    assert "earlier" not in str(refusal.value)


def test_a_profiler_that_is_busy_says_so(refused, monkeypatch):
    def busy(*_):
        raise RuntimeError("profiler is already enabled on this thread")

    monkeypatch.setattr(profiler, "_profile", busy)
    with pytest.raises(NoGpuActivity, match="the profiler did not start: profiler is already enabled"):
        profiler.measure(Timed(Multiplying(), lambda: None, SPEC))


def test_a_log_that_is_no_file_tells_nothing(monkeypatch):
    reading, writing = os.pipe()
    kept = os.dup(2)
    os.dup2(writing, 2)
    try:
        tail = LogTail()
        os.write(2, b"CUPTI_ERROR\n")
        assert tail.told("cupti") == ""
    finally:
        os.dup2(kept, 2)
        for descriptor in (reading, writing, kept):
            os.close(descriptor)


def test_the_end_of_a_log_is_read_and_not_all_of_it(log: Path):
    tail = LogTail()
    os.write(2, b"".join(b"CUPTI says %d\n" % number for number in range(10)))
    assert tail.told("cupti") == ": CUPTI says 7 | CUPTI says 8 | CUPTI says 9"
