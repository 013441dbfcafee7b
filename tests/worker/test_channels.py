"""What the channels count, against workloads whose numbers are known by hand."""

import pytest
import torch

from torchbenchmark.channels import CHANNELS
from torchbenchmark.worker.channels import SECTIONS, dispatch
from torchbenchmark.worker.host_probe import SLOPE, HostProbe, at_reference_speed
from torchbenchmark.worker.timing import Timed

SPEC = {"budget_s": 0.02, "warmup_cap_s": 0.02, "min_unit_s": 0.001, "min_samples": 3}


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


def test_every_section_gives_channels_that_the_table_knows():
    loop = Timed(Product(), lambda: None, SPEC, HostProbe().run)
    given = [set(section.measure(loop)) for section in SECTIONS]
    assert set().union(*given) == set(CHANNELS) - {"first_batch"}
    assert sum(map(len, given)) == len(set().union(*given)), "two sections give the same channel"


def test_throughput_is_batch_size_over_latency():
    samples = SECTIONS[0].measure(Timed(Product(), lambda: None, SPEC))
    assert samples["throughput"] == [64 / wall for wall in samples["latency"]]


def test_adjusted_cpu_time_follows_the_probe_unit_by_unit():
    readings = iter([0.0005, 0.0015] * 1000)  # a millisecond in the mean: the reference speed
    samples = SECTIONS[0].measure(Timed(Product(), lambda: None, SPEC, lambda: next(readings)))
    assert samples["host_probe"] == pytest.approx([0.001] * len(samples["cpu_time"]))
    assert samples["cpu_time_adjusted"] == pytest.approx(samples["cpu_time"])


def test_a_host_at_half_its_speed_is_adjusted_by_the_slope():
    assert at_reference_speed(0.003, 0.001) == 0.003
    assert at_reference_speed(0.003, 0.002) == pytest.approx(0.003 / 2**SLOPE)


def test_without_a_probe_its_channels_are_absent():
    samples = SECTIONS[0].measure(Timed(Product(), lambda: None, SPEC))
    assert set(samples) == {"latency", "cpu_time", "throughput"}
