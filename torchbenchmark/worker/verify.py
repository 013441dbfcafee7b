"""Checks that what a model computed can be the result of a healthy build."""

from collections.abc import Sequence

import torch

from torchbenchmark.worker.outcome import NonFiniteOutput


def require_finite(outputs: Sequence[torch.Tensor], iteration: str) -> None:
    """Raise NonFiniteOutput if a floating-point output holds NaN or infinity."""
    if not outputs:
        raise ValueError(f"{iteration} gave no tensor: nothing shows that anything was computed")
    for position, tensor in enumerate(outputs):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        finite = torch.isfinite(tensor.detach())
        if not bool(finite.all()):
            bad = int((~finite).sum())
            what = "the loss" if tensor.numel() == 1 and len(outputs) == 1 else f"output {position}"
            raise NonFiniteOutput(f"{what} of {iteration} is not finite ({bad} of {tensor.numel()} values)")
