"""Two instances have nothing in common: what one does is not seen in the other."""

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import Held, held_by
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import SEED, BenchmarkModel

ITERATIONS = 2


def breaches(case: Case) -> list[str]:
    first, second = case.build(), case.build()
    ours, theirs = held_by(first), held_by(second)
    if shared := _shared(ours, theirs):
        return [f"two instances share {listed(shared)}; make it in setup(), and keep it in attributes of self"]
    before = {path: tensor.detach().clone() for path, tensor in theirs.tensors.items()}
    outputs = _outputs(first)
    if changed := [path for path, was in before.items() if not _same(theirs.tensors[path], was)]:
        return [f"iterations of one instance change {listed(changed)} of another; share nothing between them"]
    if not case.declared.deterministic or case.device != "cpu":
        return []
    if not all(map(_same, outputs, _outputs(second))):
        return [
            "an instance gives other outputs when another one has run before it; keep no state in the class, in the "
            "module or in globals"
        ]
    return []


def _shared(ours: Held, theirs: Held) -> list[str]:
    storages = {tensor.untyped_storage()._cdata for tensor in theirs.tensors.values() if _has_storage(tensor)}
    objects = {id(one) for held in (theirs.modules, theirs.optimizers, theirs.generators) for one in held.values()}
    tensors = [p for p, one in ours.tensors.items() if _has_storage(one) and one.untyped_storage()._cdata in storages]
    others = [
        path
        for held in (ours.modules, ours.optimizers, ours.generators)
        for path, one in held.items()
        if id(one) in objects
    ]
    return others or tensors


def _has_storage(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided


def _outputs(model: BenchmarkModel) -> list[torch.Tensor]:
    torch.manual_seed(SEED)
    return [tensor.detach().clone() for _ in range(ITERATIONS) for tensor in model.invoke()]


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.detach().nan_to_num(), other.detach().nan_to_num())


CONTRACT = Contract("independence", "two instances share nothing, and neither changes the other", breaches)
