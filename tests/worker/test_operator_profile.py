"""From what the profiler recorded on the host to a profile: made-up events, and a real model."""

import gzip
import json
from dataclasses import dataclass

import pytest
import tiny_model
import torch

from torchbenchmark.profiles.process_profile import profile_of
from torchbenchmark.worker.channels import SECTIONS, operators
from torchbenchmark.worker.channels.operators import HostEvent, Recorded, by_name, covered_ns, own_times, shortened
from torchbenchmark.worker.channels.profiler import Activity
from torchbenchmark.worker.timing import Timed

SPEC = {"device": "cpu", "backend": "eager", "budget_s": 0.05, "warmup_cap_s": 0.05, "min_unit_s": 0.001}
SPEC |= {"min_samples": 3}
MS = 1_000_000


def event(name: str, start: float, end: float, **more: int) -> HostEvent:
    return HostEvent(name, int(start * MS), int(end * MS), **more)


def iteration(start: float, end: float) -> HostEvent:
    return event(operators.ITERATION, start, end)


def test_an_operator_has_its_own_time_without_those_inside_it():
    linear, addmm, t = event("linear", 0, 10, id=1), event("addmm", 2, 8, id=2), event("t", 3, 4, id=3)
    other = event("backward", 1, 9, thread=2, id=4)
    own = dict(own_times([linear, addmm, t, other], []))
    assert own == {linear: 4 * MS, addmm: 5 * MS, t: 1 * MS, other: 8 * MS}


def test_a_wait_is_taken_from_the_operator_that_made_it():
    item = event("item", 0, 10, id=7)
    wait = event("cudaStreamSynchronize", 1, 9, thread=99, operator=7)
    assert wait.waits and not event("cudaLaunchKernel", 0, 1).waits
    assert own_times([item], [wait]) == [(item, 2 * MS)]


def test_what_is_covered_counts_once_on_whatever_thread():
    assert covered_ns(iteration(0, 10), [event("a", 1, 4), event("b", 2, 5, thread=2), event("c", 9, 12)]) == 5 * MS


def recorded(**changes) -> Recorded:
    """Six iterations of 10 ms; in the last something else had the CPU for 20 ms, while aten::add was at work."""
    starts, late = [20 * number for number in range(6)], 20
    parts = {
        "iterations": tuple(iteration(start, start + 10 + late * (start == 100)) for start in starts),
        "operators": tuple(
            one
            for number, start in enumerate(starts)
            for one in (
                event("aten::add", start + 1, start + 3 + late * (start == 100), id=2 * number + 1),
                event(
                    "aten::mul", start + 4 + late * (start == 100), start + 5 + late * (start == 100), id=2 * number + 2
                ),
            )
        ),
        "calls": tuple(
            event("cudaDeviceSynchronize", start + 6 + late * (start == 100), start + 10 + late * (start == 100))
            for start in starts
        ),
        "activities": (
            *((2 * number + 1, Activity("add_kernel", 0, (number + 1) * MS)) for number in range(6)),
            (2, Activity("Memcpy DtoD", 0, 1 * MS, is_copy=True)),
            (0, Activity("nobody's", 0, 1 * MS)),
        ),
    }
    return Recorded(**(parts | changes))


def test_host_times_are_those_of_undisturbed_iterations_and_kernels_are_means_of_all():
    profile = profile_of(by_name(recorded()))
    assert profile.iterations == 6
    assert (profile.wall_s, profile.waiting_s, profile.outside_s) == (0.010, 0.004, 0.003)
    told = {one.name: one for one in profile.operators}
    assert told["aten::add"].host_s == 0.002 and told["aten::add"].calls == 1
    (kernel,) = told["aten::add"].kernels
    assert (kernel.name, kernel.launches, kernel.seconds) == ("add_kernel", 1, 0.0035)
    assert told["aten::mul"].kernels[0].is_copy
    assert told[""].kernels[0].launches == pytest.approx(1 / 6), "a kernel that no operator launched"


def test_what_threads_do_at_once_is_not_outside_of_operators():
    busy = (event("aten::add", 0, 10, id=1), event("AddBackward0", 2, 8, thread=2, id=2))
    profile = profile_of(by_name(recorded(operators=busy, calls=(), activities=(), iterations=(iteration(0, 10),))))
    assert profile.outside_s == 0 and {one.host_s for one in profile.operators} == {0.010, 0.006}


def test_long_names_are_cut_and_still_differ():
    names = [shortened("void kernel<" + "float, " * 100 + ending) for ending in ("1>", "2>")]
    assert len(set(names)) == 2 and all(len(name) <= operators.LONGEST_NAME for name in names)


@dataclass(frozen=True)
class Told:
    """An event of the profiler, as far as its kind is asked for; older torch has no activity types."""

    called: str
    annotation: bool = False
    device: torch.autograd.DeviceType = torch.autograd.DeviceType.CPU
    linked: int = 0

    name = property(lambda self: lambda: self.called)
    is_user_annotation = property(lambda self: lambda: self.annotation)
    device_type = property(lambda self: lambda: self.device)
    linked_correlation_id = property(lambda self: lambda: self.linked)

    def __getattr__(self, name: str):
        if name in ("activity_type", "is_hidden_event") or name.startswith("_"):
            raise AttributeError(name)
        return lambda: name == "duration_ns"  # 1, and 0 or False of all else


class Newer(Told):
    """As newer torch tells it."""

    def activity_type(self) -> str:
        kinds = {"cudaLaunchKernel": "cuda_runtime", "cuLaunchKernelEx": "cuda_driver", "Resource": "overhead"}
        return kinds.get(self.called, "cpu_op")


@pytest.mark.parametrize("kind", [Told, Newer])
def test_events_are_told_apart_by_what_torch_calls_them_and_else_by_their_names(kind):
    cuda = torch.autograd.DeviceType.CUDA
    found = operators.sort_events(
        [
            kind("aten::cudnn_convolution"),
            kind("cudaLaunchKernel", linked=4),
            kind("cuLaunchKernelEx", linked=4),
            kind("Resource"),
            kind(operators.ITERATION, annotation=True),
            kind("Optimizer.step", annotation=True),
            Told("sgemm", device=cuda, linked=4),
        ]
    )
    assert [one.name for one in found.iterations] == [operators.ITERATION]
    assert [one.name for one in found.operators] == ["aten::cudnn_convolution"]
    assert [(one.name, one.operator) for one in found.calls] == [("cudaLaunchKernel", 4), ("cuLaunchKernelEx", 4)]
    assert [(operator, one.name) for operator, one in found.activities] == [(4, "sgemm")]


def spin() -> int:
    total = 0
    for number in range(20_000):
        total += number
    return total


class Slowed(tiny_model.Model):
    """With Python work beside the operators."""

    def invoke(self):
        spin()
        return super().invoke()


def profiled(kind: type, **spec: object) -> Timed:
    model = kind("train", "cpu")
    timed = Timed(model, lambda: None, SPEC | {"profile": {"trace": None}} | spec)
    timed.warm_up()
    operators.measure(timed)
    return timed


def test_a_real_model_has_its_operators():
    profile = profile_of(profiled(tiny_model.Model).profile)
    told = {one.name: one for one in profile.operators}
    assert told["aten::addmm"].calls == 2 and told["AddmmBackward0"].calls == 2
    assert not any(one.kernels for one in profile.operators)


def test_all_time_of_an_iteration_is_in_operators_or_outside():
    timed = profiled(tiny_model.Model)
    results, _ = operators._record(timed, 1)
    profile = profile_of(by_name(operators.sort_events(results.events())))
    parts = profile.outside_s + sum(one.host_s for one in profile.operators)
    assert parts == pytest.approx(profile.wall_s, rel=1e-3)


def test_python_work_is_outside_of_operators():
    plain, slowed = (profile_of(profiled(kind).profile) for kind in (tiny_model.Model, Slowed))
    assert {one.name: one.calls for one in plain.operators} == {one.name: one.calls for one in slowed.operators}
    assert slowed.outside_s > 0.0002, "20,000 additions in Python take longer anywhere"


def test_a_trace_is_left_where_it_is_asked_for(tmp_path):
    path = tmp_path / "trace.json.gz"
    profiled(tiny_model.Model, profile={"trace": str(path)})
    with gzip.open(path) as file:
        names = {one.get("name") for one in json.load(file)["traceEvents"]}
    assert {"aten::addmm", operators.ITERATION} <= names
    assert [one.name for one in tmp_path.iterdir()] == ["trace.json.gz"]


def test_ordinary_measuring_takes_no_profile():
    (section,) = [section for section in SECTIONS if section.measure is operators.measure]
    assert not section.applies(SPEC) and section.applies(SPEC | {"profile": {"trace": None}})
