"""Training trains: every parameter that asks for gradients is changed, and every optimizer steps."""

import fnmatch
from collections.abc import Mapping

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import Held, held_by
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import BenchmarkModel

STEPS = 8  # some optimizers step every few iterations only
VISIBLE_RATE = 0.1  # learning rate at which a step shows in float32, however small the gradient


def breaches(case: Case) -> list[str]:
    model = case.build()
    idle = _idle_optimizers(model)
    held = held_by(model)
    if not held.optimizers:
        return ["the model holds no optimizer; build it in setup() and keep it in an attribute"]
    unchanged = _unchanged(model, held, STEPS)
    if unchanged:
        again = case.build()
        unchanged &= _unchanged(again, _with_visible_rate(again), STEPS)
    found = [f"{name} never steps in {STEPS} iterations; step it, or do not build it" for name in idle()]
    untrained = case.declared.untrained
    if left := [path for path in sorted(unchanged) if not _declared(path, untrained)]:
        found.append(
            f"{STEPS} training steps leave {len(left)} of {len(held.trainable)} trainable tensors as they were: "
            f"{listed(left)}; give them to an optimizer that steps, freeze them, or declare why: `untrained`"
        )
    for glob in untrained:
        named = {path for path in held.trainable if fnmatch.fnmatchcase(path, glob)}
        if not named:
            found.append(
                f"metadata declares {glob} as `untrained`, and no trainable tensor has such a name; take it out"
            )
        elif trained := sorted(named - unchanged):
            found.append(
                f"metadata declares {glob} as `untrained`, and {listed(trained)} are trained; name the others only"
            )
    return found


def _declared(path: str, untrained: Mapping[str, str]) -> bool:
    return any(fnmatch.fnmatchcase(path, glob) for glob in untrained)


def _idle_optimizers(model: BenchmarkModel):
    """What tells, after some iterations, which optimizers have never stepped."""
    stepped: set[str] = set()
    optimizers = held_by(model).optimizers
    for path, optimizer in optimizers.items():
        optimizer.register_step_post_hook(lambda *_, path=path: stepped.add(path))
    return lambda: [f"the optimizer in {path}" for path in optimizers if path not in stepped]


def _with_visible_rate(model: BenchmarkModel) -> Held:
    held = held_by(model)
    for optimizer in held.optimizers.values():
        for group in optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(VISIBLE_RATE)
            else:
                group["lr"] = VISIBLE_RATE
    return held


def _unchanged(model: BenchmarkModel, held: Held, steps: int) -> set[str]:
    """The trainable tensors that are still what they were after so many iterations, or as many as it takes."""
    waiting = {path: (tensor, tensor.detach().clone()) for path, tensor in held.trainable.items()}
    for _ in range(steps):
        model.invoke()
        waiting = {path: (now, was) for path, (now, was) in waiting.items() if torch.equal(now.detach(), was)}
        if not waiting:
            break
    return set(waiting)


CONTRACT = Contract(
    "updates",
    "training changes every trainable parameter and steps every optimizer",
    breaches,
    tests=("train",),
    presumes=("nothing built",),
)
