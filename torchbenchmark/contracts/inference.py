"""An inference computes no gradients, and leaves no trace."""

from typing import Any

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import held_by, same_to_the_bit
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import SEED

ITERATIONS = 2


def breaches(case: Case) -> list[str]:
    model = case.build()
    without_grad = type(model).EVAL_WITHOUT_GRAD
    held = held_by(model)
    before = {path: tensor.detach().clone() for path, tensor in held.tensors.items()}
    with_grad: set[str] = set()

    def note(path: str, module: torch.nn.Module) -> None:
        if torch.is_grad_enabled():
            with_grad.add(path)

    for path, module in held.modules.items():
        module.register_forward_pre_hook(lambda one, args, path=path: note(path, one))
    outputs: list[tuple[torch.Tensor, ...]] = []
    for _ in range(ITERATIONS):
        torch.manual_seed(SEED)
        outputs.append(model.invoke())
    found = []
    if training := sorted({path for path, one in held.modules.items() if any(m.training for m in one.modules())}):
        found.append(f"an inference runs with {listed(training)} in training mode; call .eval() on it in setup()")
    if without_grad:
        if with_grad or any(tensor.requires_grad for tensor in outputs[-1]):
            found.append(
                "an inference computes gradients although EVAL_WITHOUT_GRAD is not False; do not turn them on, or say "
                "in the class that the workload needs them"
            )
        if held.optimizers:
            found.append(
                f"an instance for inference holds the optimizer {listed(held.optimizers)}; build it for training only"
            )
        found += _trains(model)
    if gradients := [path for path, tensor in held.tensors.items() if _gradient(tensor) is not None]:
        found.append(f"an inference leaves gradients in {listed(gradients)}")
    if changed := [path for path, was in before.items() if not same_to_the_bit(held.tensors[path], was)]:
        found.append(f"an inference changes {listed(changed)}; the next one would be other work")
    elif case.declared.deterministic and not all(map(case.agree, *outputs)):
        found.append(
            "two inferences of one instance give other outputs; keep no state, or declare `deterministic: false`"
        )
    return found


def _trains(model: Any) -> list[str]:
    try:
        model.train()
    except NotImplementedError:
        return []
    except Exception as error:
        return [f"train() of an instance for inference raises {type(error).__name__}; raise NotImplementedError"]
    return ["train() of an instance for inference trains; raise NotImplementedError"]


def _gradient(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor.grad if tensor.is_leaf else None


CONTRACT = Contract(
    "inference", "an inference is in eval mode, without gradients, and leaves no trace", breaches, tests=("eval",)
)
