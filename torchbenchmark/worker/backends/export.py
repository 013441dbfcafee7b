"""Backend `export`: the program that torch.export makes of the module, run by eager kernels.

It is exported for the example inputs, their shapes fixed, in the mode (train or eval) in which the module is.
"""

import torch

from torchbenchmark.model import BenchmarkModel


def prepare(model: BenchmarkModel) -> None:
    module, inputs = model.get_module()
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with torch.set_grad_enabled(model.test == "train" or not model.EVAL_WITHOUT_GRAD):
        exported = torch.export.export(module, args, kwargs).module()
    if model.test == "train":
        require_same_parameters(module, exported)
    model.set_module(exported)


def require_same_parameters(module: torch.nn.Module, exported: torch.nn.Module) -> None:
    """The optimizer was built for the parameters of `module`: trained copies of them would measure nothing."""
    before = {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
    after = {id(parameter) for parameter in exported.parameters() if parameter.requires_grad}
    if not after <= before:
        raise RuntimeError("torch.export gave the program parameters of its own, which the optimizer does not have")
