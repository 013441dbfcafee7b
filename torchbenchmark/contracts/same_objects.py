"""An iteration works on the network, the inputs and the optimizers that were there before it, and leaves them there."""

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import held_by
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import BenchmarkModel, as_tensors

ITERATIONS = 2


def breaches(case: Case) -> list[str]:
    model = case.build()
    before = Before(model)
    for _ in range(ITERATIONS):
        model.invoke()
        if found := before.differs_from(model):
            return found
    return []


class Before:
    """What there was before the first iteration."""

    def __init__(self, model: BenchmarkModel) -> None:
        self.network, inputs = model.get_module()
        self.submodules = dict(self.network.named_modules())
        self.held = held_by(model)
        self.inputs = [tensor.clone() for tensor in as_tensors(inputs)]

    def differs_from(self, model: BenchmarkModel) -> list[str]:
        """What another iteration has exchanged: the outermost of it."""
        now = held_by(model)
        network, inputs = model.get_module()
        if network is not self.network:
            return ["get_module() gives another network after an iteration; build it once, in setup()"]
        if changed := [name for name, one in network.named_modules() if self.submodules.get(name) is not one]:
            return [f"an iteration exchanges the modules {listed(changed)} of the network; build them once, in setup()"]
        if changed := [path for path, one in self.held.modules.items() if now.modules.get(path) is not one]:
            return [f"an iteration exchanges the network in {listed(changed)}; build it once, in setup()"]
        if changed := [path for path, one in self.held.optimizers.items() if now.optimizers.get(path) is not one]:
            return [f"an iteration exchanges the optimizer in {listed(changed)}; build it once, in setup()"]
        parameters = {path: one for path, one in self.held.tensors.items() if isinstance(one, torch.nn.Parameter)}
        if changed := [path for path, one in parameters.items() if now.tensors.get(path) is not one]:
            return [f"an iteration exchanges the parameters {listed(changed)}; change their values in place"]
        tensors = as_tensors(inputs)
        if len(tensors) != len(self.inputs) or not all(map(torch.equal, self.inputs, tensors)):
            return ["the example inputs have other values after an iteration; work on a copy that setup() has made"]
        return []


CONTRACT = Contract(
    "same objects",
    "networks, inputs and optimizers stay the objects that setup() made",
    breaches,
    presumes=("nothing built",),
)
