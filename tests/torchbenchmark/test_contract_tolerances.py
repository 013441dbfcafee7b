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
        (torch.tensor([1.0 + 1j]), torch.tensor([1.0 + 2j]), False),
        (torch.tensor([torch.nan]), torch.tensor([0.0]), False),
        (torch.tensor([torch.inf]), torch.tensor([torch.finfo().max]), False),
        (torch.tensor([1.0]).to(torch.float8_e4m3fn), torch.tensor([1.0]).to(torch.float8_e4m3fn), True),
        (torch.eye(2).to_sparse(), torch.eye(2).to_sparse(), True),
        (torch.eye(2).to_sparse(), 2 * torch.eye(2).to_sparse(), False),
    ],
)
def test_what_agrees_on_a_gpu_and_to_the_bit(one, other, agree):
    assert case("cuda", rtol=0.0, atol=2 * STEP).agree(one, other) is agree
    near = one.is_floating_point() and one.layout == torch.strided and 0 < (one.float() - other.float()).abs().max() < 1
    assert case("cpu").agree(one, other) is (agree and not near)


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ((torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64)), "float32[1] and float64[1]"),
        ((torch.tensor([1.0]), torch.tensor([1.0, 1.0])), "float32[1] and float32[2]"),
        ((torch.tensor([1.0 + 1j]), torch.tensor([1.0 + 3j])), "by 2"),
    ],
)
def test_how_outputs_differ_is_told(outputs, told, monkeypatch):
    inferences = iter([outputs[0]] * determinism.ITERATIONS + [outputs[1]] * determinism.ITERATIONS)
    monkeypatch.setattr(Unsteady, "eval", lambda self: (next(inferences),))
    (breach,) = determinism.breaches(case("cpu"))
    assert told in breach
