"""Channels `operators` and `flops`: exact counts over one more iteration, watched at the dispatcher."""

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from torchbenchmark.worker.timing import Timed


class OperatorCount(TorchDispatchMode):
    """Counts every ATen operator that reaches the backend, those of the backward pass and the optimizer too."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.total += 1
        return operator(*args, **(kwargs or {}))


def measure(timed: Timed) -> dict[str, list[float]]:
    """The number of operators and of floating-point operations in one iteration of the warm model.

    None of a module behind torch.compile: while the dispatcher is watched, torch runs such a module uncompiled.
    """
    dynamo = sys.modules.get("torch._dynamo")  # nothing is compiled before it is there
    if dynamo is not None and isinstance(getattr(timed.model, "module", None), dynamo.OptimizedModule):
        return {}
    operators = OperatorCount()
    with operators:
        timed.model.invoke()
        timed.synchronize()
    flops = FlopCounterMode(display=False)
    with flops, torch.autograd.set_multithreading_enabled(False):
        timed.model.invoke()
        timed.synchronize()
    return {"operators": [float(operators.total)], "flops": [float(flops.get_total_flops())]}
