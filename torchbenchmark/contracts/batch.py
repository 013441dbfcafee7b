"""The batch is the one that was asked for: the inputs have it, the network is given it, and the work grows with it."""

import itertools
from dataclasses import dataclass

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.watching import watch
from torchbenchmark.model import as_tensors

SIZES = (1, 3)
LARGER = 5  # beside those, where the default is none that is larger
LEAST_GROWTH = 0.5  # of the work of a further item, against that of the second and third


@dataclass(frozen=True)
class Run:
    """One batch size: what the network was given in an iteration, and how much was computed."""

    size: int
    rows: int
    calls: int
    elements: int


def breaches(case: Case) -> list[str]:
    found: list[str] = []
    runs: list[Run] = []
    default = case.build()
    sizes = [default.batch_size, *SIZES] + ([LARGER] if default.batch_size <= max(SIZES) else [])
    for size in dict.fromkeys(sizes):
        model = default if size == default.batch_size else case.build(batch_size=size)
        if model.batch_size != size:
            found.append(f"asked for a batch of {size}, the model says batch_size {model.batch_size}")
        inputs = as_tensors(model.get_module()[1])
        first = tuple(inputs[0].shape) if inputs else ()
        if not first or first[0] != size:
            found.append(
                f"at a batch of {size} the first example input is of shape {first}, which does not begin with it"
            )
        runs.append(_run(model, size))
    if found:
        return found
    if not any(run.calls for run in runs):
        return ["an iteration never calls the network that get_module() gives; call self.module(...)"]
    if case.declared.waits_for_device is None:
        ratios = {run.size: run.rows / run.size for run in runs}
        if len(set(ratios.values())) > 1 or any(ratio < 1 or ratio % 1 for ratio in ratios.values()):
            told = ", ".join(f"{run.rows} rows at a batch of {run.size}" for run in runs)
            found.append(
                f"the network is not given the batch in an iteration: {told}; give it the whole batch at every size"
            )
    if not found and (slack := _growth(sorted(runs, key=lambda run: run.size))) is not None:
        found.append(slack)
    return found


def _run(model, size: int) -> Run:
    rows: list[int] = []

    def note(module, args, kwargs) -> None:
        tensors = as_tensors([list(args), kwargs])
        rows.append(_rows_of(tensors[0]) if tensors else 0)

    hook = model.get_module()[0].register_forward_pre_hook(note, with_kwargs=True)
    seen = watch(model, model.invoke, warm=0, iterations=1)
    hook.remove()
    return Run(size, sum(rows), len(rows), seen.elements)


def _rows_of(tensor: torch.Tensor) -> int:
    """The leading dimension, times what torch.func.vmap has hidden: a call with one sample may be one for each."""
    rows = tensor.shape[0] if tensor.dim() > 0 else 1
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        inner = functorch.get_unwrapped(tensor)
        if functorch.is_batchedtensor(tensor):
            rows *= inner.shape[functorch.maybe_get_bdim(tensor)]
        tensor = inner
    return rows


def _growth(runs: list[Run]) -> str | None:
    """Whether each further item of the batch costs about as much as those before; what is learned once costs once."""
    steps = [
        (one.size, other.size, (other.elements - one.elements) / (other.size - one.size))
        for one, other in itertools.pairwise(runs)
    ]
    first = steps[0][2]
    for smaller, larger, each in steps:
        if each <= 0 or each < LEAST_GROWTH * first:
            return (
                f"the work does not grow with the batch: from {smaller} to {larger} items each one adds {each:.0f} "
                f"elements, from {steps[0][0]} to {steps[0][1]} {first:.0f}; compute with the whole batch"
            )
    return None


CONTRACT = Contract(
    "batch", "inputs, calls and work are of the batch size that was asked for", breaches, presumes=("same objects",)
)
