"""Backend `jit`, as V1 had it: training runs the scripted module; an inference the scripted and frozen one, optimised.

A module that cannot be scripted fails here. What a model never could, its metadata says; the rest is a regression.
"""

import torch

from torchbenchmark.model import BenchmarkModel


def prepare(model: BenchmarkModel) -> None:
    module, _ = model.get_module()
    scripted = torch.jit.script(module)
    if not module.training and model.test == "eval":
        scripted = torch.jit.optimize_for_inference(scripted)
    model.set_module(scripted)
