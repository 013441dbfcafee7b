"""Channels `operators` and `flops`: exact counts over one more iteration, watched at the dispatcher."""

import inspect
import sys

import torch
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode

from torchbenchmark.worker.timing import Timed


class OperatorCount(TorchDispatchMode):
    """Counts every ATen operator that reaches the backend, those of the backward pass and the optimizer too."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False as nothing compiles here: to keep Dynamo out of `__torch_dispatch__`, torch would import it."""
        return False

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
    if dynamo is None:
        _keep_dynamo_out_of(getattr(flop_counter, "_FlopCounterMode", None))
    flops = flop_counter.FlopCounterMode(display=False)
    with flops, torch.autograd.set_multithreading_enabled(False):
        timed.model.invoke()
        timed.synchronize()
    return {"operators": [float(operators.total)], "flops": [float(flops.get_total_flops())]}


def _keep_dynamo_out_of(mode: type | None) -> None:
    """Have a dispatch mode of torch's do what it does without the wrapper that imports torch._dynamo, so as to keep it
    from compiling the mode: that takes as long as torch itself, and nothing compiles. A build without either is fine.
    """
    if wrapped := vars(mode).get("__torch_dispatch__") if mode is not None else None:
        mode.__torch_dispatch__ = inspect.unwrap(wrapped)
