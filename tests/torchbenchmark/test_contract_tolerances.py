"""How far outputs of the same work may lie apart: not at all on the CPU, by the declared tolerance on a GPU."""

import pytest
import torch

from torchbenchmark.contracts import determinism, inference
from torchbenchmark.contracts.contract import Case, Declared
from torchbenchmark.model import BenchmarkModel, Preset

STEP = 1e-4


class Unsteady(BenchmarkModel):
    """Each of its inferences lies a little off the one before, as sums that a GPU takes in any order do."""

    PRESETS = {"tiny": Preset(train_batch=2, eval_batch=2, shape={})}
    inferences = 0  # of all instances, or the contract of determinism would compare equal ones

    def setup(self) -> None:
        self.module = torch.nn.Linear(3, 3)
        self.example_inputs = (torch.ones(self.batch_size, 3),)

    def eval(self) -> tuple[torch.Tensor, ...]:
        Unsteady.inferences += 1
        return (self.call_module() + STEP * (Unsteady.inferences % 2),)


def case(device: str, **declared: float) -> Case:
    def make(*, device: str, **others: object) -> BenchmarkModel:
        return Unsteady(device="cpu", **others)

    return Case(make, "eval", device, "tiny", declared=Declared(**declared))


@pytest.mark.parametrize("contract", [inference, determinism], ids=lambda module: module.CONTRACT.name)
def test_outputs_on_a_gpu_may_differ_by_the_declared_tolerance_and_no_more(contract):
    assert contract.breaches(case("cuda", rtol=0.0, atol=2 * STEP)) == []
    assert contract.breaches(case("cuda", rtol=0.0, atol=STEP / 2)) != []


@pytest.mark.parametrize("contract", [inference, determinism], ids=lambda module: module.CONTRACT.name)
def test_outputs_on_the_cpu_may_not_differ_whatever_the_tolerance(contract):
    assert contract.breaches(case("cpu", rtol=1.0, atol=1.0)) != []


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.nan]), True),
        (torch.tensor([1.0]), torch.tensor([1.0 + STEP]), True),
        (torch.tensor([1.0]), torch.tensor([1.0 + 3 * STEP]), False),
        (torch.tensor([10_000]), torch.tensor([10_001]), False),
        (torch.tensor([1.0]), torch.tensor([1.0, 1.0]), False),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), False),
        (torch.tensor([1.0 + 1j]), torch.tensor([1.0 + 1j]), True),
    ],
)
def test_what_agrees_on_a_gpu(one, other, agree):
    assert case("cuda", rtol=0.0, atol=2 * STEP).agree(one, other) is agree
