"""What training returns is a loss: one finite number that falls on data that stay the same."""

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.model import SEED

STEPS = 20
WINDOW = 5  # the first and the last steps that are compared


def breaches(case: Case) -> list[str]:
    model = case.build()
    losses = []
    for _ in range(STEPS):
        torch.manual_seed(SEED)  # with the same noise in every step only the training changes the loss
        (loss,) = model.invoke()
        if not isinstance(loss, torch.Tensor):
            return [f"train() returns {type(loss).__name__} and no tensor; return the detached scalar loss"]
        if loss.dim() > 0 or loss.requires_grad:
            detached = "" if loss.requires_grad else "detached "
            return [f"train() returns a {detached}tensor of shape {tuple(loss.shape)}; return the detached scalar loss"]
        losses.append(float(loss))
    curve = torch.tensor(losses, dtype=torch.float64)
    if not curve.isfinite().all():
        step = int(curve.isfinite().logical_not().nonzero()[0])
        return [f"the loss of step {step + 1} is {losses[step]}; what such numbers cost shows nothing"]
    first, last = float(curve[:WINDOW].mean()), float(curve[-WINDOW:].mean())
    if last < first or case.declared.loss_need_not_fall is not None:
        return []
    return [
        f"the loss does not fall on the same data: {first:.6g} at the beginning of {STEPS} steps, {last:.6g} at the "
        "end; train on the data, or declare why: `loss_need_not_fall`"
    ]


CONTRACT = Contract(
    "loss",
    f"the loss is finite, and falls over {STEPS} steps unless `loss_need_not_fall` says why",
    breaches,
    tests=("train",),
    presumes=("updates",),
)
