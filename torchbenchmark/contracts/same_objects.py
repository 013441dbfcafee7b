"""An iteration works on the network, the inputs and the optimizers that were there before it, and leaves them there."""

import copy

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import held_by
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import as_tensors

ITERATIONS = 2


def breaches(case: Case) -> list[str]:
    model = case.build()
    network, inputs = model.get_module()
    before = held_by(model)
    submodules = dict(network.named_modules())
    values = [tensor.clone() for tensor in as_tensors(copy.copy(inputs))]
    for _ in range(ITERATIONS):
        model.invoke()
    found = []
    after = held_by(model)
    if model.get_module()[0] is not network:
        found.append("get_module() gives another network after an iteration; build it once, in setup()")
    elif changed := [name for name, one in network.named_modules() if submodules.get(name) is not one]:
        found.append(f"modules of the network were exchanged by an iteration: {listed(changed)}")
    parameters = [
        path
        for path, tensor in before.tensors.items()
        if isinstance(tensor, torch.nn.Parameter) and after.tensors.get(path) is not tensor
    ]
    if parameters and not found:
        found.append(f"parameters were exchanged by an iteration: {listed(parameters)}; change their values in place")
    for what, was, now in (
        ("network", before.modules, after.modules),
        ("optimizer", before.optimizers, after.optimizers),
    ):
        if exchanged := [path for path in was if path != "module" and now.get(path) is not was[path]]:
            found.append(f"an iteration exchanged the {what} in {listed(exchanged)}; build it once, in setup()")
    now = as_tensors(model.get_module()[1])
    if len(now) != len(values) or any(not torch.equal(one, other) for one, other in zip(values, now, strict=True)):
        found.append("the example inputs have other values after an iteration; work on a copy that setup() has made")
    return found


CONTRACT = Contract("same objects", "networks, inputs and optimizers stay the objects that setup() made", breaches)
