"""Backend `jit`, as V1 had it: training runs the scripted module; an inference the scripted and frozen one, optimised.

A module that cannot be scripted fails here. What a model never could, its metadata says; the rest is a regression.
"""

import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel


def prepare(model: BenchmarkModel) -> None:
    module, _ = model.get_module()
    forget_builtins_at_addresses_of(module)
    scripted = torch.jit.script(module)
    if not module.training and model.test == "eval":
        scripted = torch.jit.optimize_for_inference(scripted)
    model.set_module(scripted)


def forget_builtins_at_addresses_of(module: nn.Module) -> None:
    """Take what no call can be from TorchScript's table of builtins, so that scripting does not fail by chance.

    The table knows a builtin by its address and does not hold it. An operator with a further overload is made anew;
    what later lies where the old one was, a list among the attributes of a module say, is taken for it: "builtin cannot
    be used as a value". Seen of one in fifteen trainings for quantization, whose
    `quantized_decomposed::dequantize_per_tensor` gets one.
    """
    private = getattr(torch.jit, "_builtins", None)  # a build that keeps its builtins elsewhere needs nothing of this
    table = getattr(private, "_get_builtin_table", dict)()
    for one in module.modules():
        for value in vars(one).values():
            if not callable(value):
                table.pop(id(value), None)
