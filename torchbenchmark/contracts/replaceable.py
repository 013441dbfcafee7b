"""What is set is what runs: a backend sets a compiled network, a precision another optimizer."""

from typing import Any

import torch
from torch import nn

from torchbenchmark.contracts.contract import Case, Contract


class Wrapped(nn.Module):
    """A network that counts its calls and is the inner one otherwise, as a compiled one is."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.inner(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


def breaches(case: Case) -> list[str]:
    found = []
    model = case.build()
    wrapped = Wrapped(model.get_module()[0])
    model.set_module(wrapped)
    if model.get_module()[0] is not wrapped:
        found.append("get_module() does not give the network that set_module() has set")
    model.invoke()
    if wrapped.calls == 0:
        found.append(
            "an iteration does not call the network that set_module() has set, so a compiled one would not run; "
            "call self.module(...)"
        )
    optimizer = model.get_optimizer()
    if case.test == "train" and optimizer is not None:
        groups = [{**group, "lr": 0.0} for group in optimizer.param_groups]
        idle = torch.optim.SGD([{"params": group["params"]} for group in groups], lr=0.0)
        model.set_optimizer(idle)
        steps: list[int] = []
        idle.register_step_post_hook(lambda *_: steps.append(1))
        model.invoke()
        if not steps:
            found.append("an iteration does not step the optimizer that set_optimizer() has set; step self.optimizer")
    return found


CONTRACT = Contract(
    "replaceable",
    "an iteration runs the network and the optimizer that were set last",
    breaches,
    presumes=("same objects",),
)
