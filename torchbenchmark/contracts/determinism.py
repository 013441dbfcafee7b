"""Two instances of a test do the same: to the bit on the CPU, within the tolerance on a GPU, where sums may be taken in
an order that the device chooses. There only the first loss of a training is compared: an optimizer makes whole steps of
gradients that are rounded differently.
"""

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.model import as_tensors

ITERATIONS = 3


def breaches(case: Case) -> list[str]:
    if not case.declared.deterministic:
        return []
    first, second = _outputs(case), _outputs(case)
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if case.agree(one, other):
            continue
        if one.shape != other.shape or one.dtype != other.dtype:
            how = " and ".join(
                f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}" for tensor in (one, other)
            )
        else:
            wide = torch.complex128 if one.is_complex() else torch.float64
            how = f"by {float((one.to(wide) - other.to(wide)).abs().max()):.3g}"
        how_far = (
            "to the bit"
            if case.device == "cpu"
            else f"within {case.declared.atol:g} + {case.declared.rtol:g} of the value"
        )
        return [
            f"two instances differ in output {number} of {len(first)}, {how}, and should agree {how_far}; draw from "
            "torch's generator alone, or declare `deterministic: false` or a `tolerance`"
        ]
    return []


def _outputs(case: Case) -> list[torch.Tensor]:
    """Of the first iterations of a fresh instance."""
    model = case.build()
    iterations = 1 if case.test == "train" and case.device != "cpu" else ITERATIONS
    return [tensor.detach().clone() for _ in range(iterations) for tensor in as_tensors(model.invoke())]


CONTRACT = Contract(
    "determinism",
    "two instances give the same outputs unless `deterministic` is false",
    breaches,
    presumes=("independence",),
)
