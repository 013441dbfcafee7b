"""forward, backward and optimizer_step, after zeroing, are what train() does: mixed precision scales between them.

What the optimizer made of a step shows in the next loss; on the CPU, where that is the same to the bit.
"""

import torch

from torchbenchmark.contracts.contract import Case, Contract, NotJudged
from torchbenchmark.model import SEED, BenchmarkModel

STEPS = 2


def breaches(case: Case) -> list[str]:
    steps = STEPS if case.device == "cpu" else 1
    staged = case.build()
    if type(staged).forward is BenchmarkModel.forward:
        return []
    torch.manual_seed(SEED)
    try:
        losses = [_by_stages(staged) for _ in range(steps)]
    except NotImplementedError:
        return []
    whole = case.build()
    torch.manual_seed(SEED)
    expected = [whole.invoke()[0] for _ in range(steps)]
    if not all(isinstance(loss, torch.Tensor) for loss in expected):
        raise NotJudged("loss comes first")
    for step, (one, other) in enumerate(zip(losses, expected, strict=True), start=1):
        if not case.agree(one, other):
            return [
                f"forward, backward and optimizer_step give the loss {float(one):.9g} at step {step}, train() gives "
                f"{float(other):.9g}; let train() be these stages, or let forward() raise NotImplementedError"
            ]
    return []


def _by_stages(model: BenchmarkModel) -> torch.Tensor:
    optimizer = model.get_optimizer()
    assert optimizer is not None
    optimizer.zero_grad(set_to_none=True)
    loss = model.forward()
    model.backward(loss)
    model.optimizer_step()
    return loss.detach()


CONTRACT = Contract(
    "stages",
    "the stages of training are what train() does",
    breaches,
    tests=("train",),
    presumes=("determinism", "gradients"),
)
