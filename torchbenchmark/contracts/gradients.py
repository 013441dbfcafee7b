"""A step uses the gradients of its own iteration: those that an earlier step has used are gone."""

from typing import Any

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import held_by
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import BenchmarkModel

ITERATIONS = 3


def breaches(case: Case) -> list[str]:
    model = case.build()
    ledger = Ledger(model)
    for _ in range(ITERATIONS):
        model.invoke()
    if ledger.piled_up:
        return [
            f"steps use gradients that an earlier step has used, of {listed(sorted(ledger.piled_up))}; zero them in "
            "every iteration"
        ]
    return []


class Ledger:
    """Follows each gradient from where it comes in to the step that uses it.

    A gradient that comes to a tensor whose `grad` a step has used, and nobody has zeroed, makes that `grad` old: the
    next step of the same optimizer must not use it. One that only comes along, as those of a discriminator in the
    step of its generator, does no harm as long as it is zeroed before that step.
    """

    def __init__(self, model: BenchmarkModel) -> None:
        held = held_by(model)
        self.paths = {id(tensor): path for path, tensor in held.tensors.items()}
        self.used: dict[int, torch.Tensor] = {}  # by parameter: the gradient that its last step has used
        self.old: set[int] = set()
        self.piled_up: set[str] = set()
        for tensor in held.trainable.values():
            tensor.register_hook(lambda gradient, tensor=tensor: self.comes_in(tensor))
        for optimizer in held.optimizers.values():
            optimizer.register_step_pre_hook(self.before_step)
            optimizer.register_step_post_hook(self.after_step)

    def comes_in(self, tensor: torch.Tensor) -> None:
        """Before a gradient is added to what the tensor has."""
        kept = tensor.grad
        if kept is not None and kept is self.used.get(id(tensor)) and _has_values(kept):
            self.old.add(id(tensor))
        else:
            self.used.pop(id(tensor), None)
            self.old.discard(id(tensor))

    def before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for parameter in _parameters(optimizer):
            if id(parameter) in self.old and parameter.grad is not None and _has_values(parameter.grad):
                self.piled_up.add(self.paths.get(id(parameter), "a parameter"))

    def after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for parameter in _parameters(optimizer):
            self.old.discard(id(parameter))
            if parameter.grad is None:
                self.used.pop(id(parameter), None)
            else:
                self.used[id(parameter)] = parameter.grad


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _has_values(gradient: torch.Tensor) -> bool:
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return bool(values.any())


CONTRACT = Contract(
    "gradients", "gradients are zeroed, and do not pile up from step to step", breaches, tests=("train",)
)
