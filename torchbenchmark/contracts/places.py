"""Everything lies where the test says. On the CPU this is seen on the device `meta`, where tensors have no memory, so
that the size `full` is looked at too: a model that forgets its device leaves something on the CPU there."""

import torch

from torchbenchmark.contracts.contract import Case, Contract, NotJudged
from torchbenchmark.contracts.held import held_by
from torchbenchmark.contracts.watching import watched
from torchbenchmark.contracts.wording import counted, listed, named
from torchbenchmark.model import as_tensors


def breaches(case: Case) -> list[str]:
    device = "meta" if case.device == "cpu" else case.device
    presets = [case.preset] + (["full"] if device == "meta" and "full" in case.declared.presets else [])
    found: list[str] = []
    for preset in dict.fromkeys(presets):
        found += _at(case, device, preset)
    return found


def _at(case: Case, device: str, preset: str) -> list[str]:
    try:
        model = case.build(device=device, preset=preset)
    except (NotImplementedError, RuntimeError) as error:
        if device != "meta" or isinstance(error, torch.OutOfMemoryError):
            raise
        raise NotJudged(
            f"the model cannot be built on the device meta ({named(error)}), where it would be seen without a GPU: "
            "check it with --device cuda"
        ) from error
    where = f"of the size {preset}, built for the device {device},"
    held = held_by(model)
    parameters = {id(one) for network in held.modules.values() for one in [*network.parameters(), *network.buffers()]}
    given = {id(one) for one in as_tensors(model.get_module()[1])}
    kinds = {"parameters and buffers": parameters, "example inputs": given}
    found = []
    elsewhere = {
        path: tensor
        for path, tensor in held.tensors.items()
        if tensor.device.type != device and (tensor.dim() > 0 or id(tensor) in parameters)
    }
    for kind, members in kinds.items():
        if wrong := {path: tensor for path, tensor in elsewhere.items() if id(tensor) in members}:
            places = sorted({tensor.device.type for tensor in wrong.values()})
            found.append(
                f"{kind} {where} {listed(wrong)} lie on {' and '.join(places)}; make them on self.device in setup()"
            )
    if found:
        return found  # what is computed from them lies there too
    seen = watched(case, device, preset, fresh=model)
    if seen.elsewhere:
        kept = f", and make {listed(elsewhere)} there in setup()" if elsewhere else ""
        found.append(f"computed {where} {counted(seen.elsewhere)}; compute on self.device{kept}")
    elif seen.problem is not None and not (seen.copies or seen.reads):
        raise NotJudged(f"an iteration {where} ended with {named(seen.problem)}: check it with --device cuda")
    return found


CONTRACT = Contract(
    "places", "parameters, buffers, inputs and all that is computed lie on the device of the test", breaches
)
