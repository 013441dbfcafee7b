"""Models that learn to paint, to act, to learn and to tell pictures apart."""

import itertools

from published.facts import ADAM, Published

STROKE_RENDERER = (10, 512, 1024, 2048, 4096)  # widths of the linear layers
STROKE_CONVOLUTIONS = ((16, 32, 16), (32, 32, 16), (8, 16, 32), (16, 16, 32), (4, 8, 64), (8, 4, 64))  # in, out, side


def linear_layers(*widths: int) -> int:
    """Weights and biases."""
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths))


def renderer_parameters() -> int:
    return linear_layers(*STROKE_RENDERER) + sum(
        (9 * inputs + 1) * outputs for inputs, outputs, _ in STROKE_CONVOLUTIONS
    )


def renderer_multiplications(strokes: int) -> int:
    linear = sum(inputs * outputs for inputs, outputs in itertools.pairwise(STROKE_RENDERER))
    return strokes * (linear + sum(9 * inputs * outputs * side**2 for inputs, outputs, side in STROKE_CONVOLUTIONS))


def meta_learned_network(*kernels: int, channels: int = 64, ways: int = 5) -> int:
    """Parameters of convolutions with biases from one channel on, their batch normalizations, and a linear layer."""
    inputs = (1, *[channels] * (len(kernels) - 1))
    convolutions = sum((size * kernel**2 + 1) * channels for size, kernel in zip(inputs, kernels, strict=True))
    return convolutions + len(kernels) * 2 * channels + linear_layers(channels, ways)


DRQ_SIDES = (41, 39, 37, 35)  # of what the convolutions make of 84 pixels
DRQ_LAYERS = (32 * DRQ_SIDES[-1] ** 2, 50, 1024, 1024, 2)  # widths of the actor's linear layers, with one action


def drq_actor_parameters() -> int:
    convolutions = (9 * 9 + 1) * 32 + 3 * (9 * 32 + 1) * 32
    layer_normalization = 2 * 50
    return convolutions + layer_normalization + linear_layers(*DRQ_LAYERS)


def drq_act_multiplications() -> int:
    convolutions = sum(9 * inputs * 32 * side**2 for inputs, side in zip((9, 32, 32, 32), DRQ_SIDES, strict=True))
    return convolutions + sum(inputs * outputs for inputs, outputs in itertools.pairwise(DRQ_LAYERS))


PUBLISHED = {
    "LearningToPaint": Published(
        renderer_parameters(), (64, 10), (64, 10), {"lr": 3e-6, "betas": (0.9, 0.999)}, renderer_multiplications(64)
    ),
    "drq": Published(
        drq_actor_parameters(),
        (128, 9, 84, 84),
        (1, 9, 84, 84),
        ADAM,
        drq_act_multiplications(),
    ),
    "maml": Published(meta_learned_network(3, 3, 3, 2), (32, 5, 1, 28, 28), (1, 5, 1, 28, 28), ADAM),
    "maml_omniglot": Published(meta_learned_network(3, 3, 3), (32, 5, 1, 28, 28), (5, 1, 28, 28), ADAM),
    # two ResNet-50 with 128 outputs each
    "moco": Published(
        2 * (25_557_032 - linear_layers(2048, 1000) + linear_layers(2048, 128)),
        (32, 3, 224, 224),
        (32, 3, 224, 224),
        {"lr": 0.03, "momentum": 0.9, "weight_decay": 1e-4},
        32 * (2 * (4.089e9 - 2048 * 1000 + 2048 * 128) + 128 * 32000),
    ),
}
