"""`module(*inputs)`, as get_module() gives them, is a forward pass: backends compile and export with that."""

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.model import as_tensors


def breaches(case: Case) -> list[str]:
    import torch

    model = case.build()
    network, inputs = model.get_module()
    with torch.set_grad_enabled(case.test == "train" or not model.EVAL_WITHOUT_GRAD):
        output = network(**inputs) if isinstance(inputs, dict) else network(*inputs)
    tensors = as_tensors(output)
    if not tensors:
        return [f"module(*inputs) of get_module() gives no tensor, but {type(output).__name__}"]
    if any(tensor.is_floating_point() and not tensor.isfinite().all() for tensor in tensors):
        return ["module(*inputs) of get_module() gives values that are not finite"]
    return []


CONTRACT = Contract("interface", "the network and the inputs of get_module() fit together", breaches)
