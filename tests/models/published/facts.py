"""What is published of the models of V1: the sizes of their networks, and V1's batches, inputs and optimizers."""

from collections.abc import Mapping
from dataclasses import dataclass

ADAM = {"lr": 1e-3, "betas": (0.9, 0.999), "weight_decay": 0}
SGD_OF_TIMM = {"lr": 1e-4, "momentum": 0.9, "weight_decay": 1e-4}


@dataclass(frozen=True)
class Published:
    """One model at the size `full`. The shapes are those of the first input, its batch first."""

    parameters: int
    train_input: tuple[int, ...]
    eval_input: tuple[int, ...]
    optimizer: Mapping[str, object]
    multiplications: float | None = None  # of one inference, in convolutions and matrix products; None if unpublished


def image_classifier(
    parameters: int,
    multiplications: float | None,
    *,
    train_batch: int,
    optimizer: Mapping[str, object],
) -> Published:
    """One trained on `train_batch` images of 224 x 224, and asked about one."""
    image = (3, 224, 224)
    return Published(parameters, (train_batch, *image), (1, *image), optimizer, multiplications)
