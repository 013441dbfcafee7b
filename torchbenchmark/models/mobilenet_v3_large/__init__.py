"""mobilenet_v3_large: inverted residuals with gates on their channels and hard swish (Howard et al. 2019)."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.convolution import (
    initialize_convolutions,
    initialize_linear_layers,
    normalized_convolution,
    set_normalizations,
)
from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.families.inverted_residual import InvertedResidual
from torchbenchmark.model import Preset

DROPOUT = 0.2
MOMENTUM, EPSILON = 0.01, 1e-3  # of all batch normalizations
SQUEEZE = 4  # a gate looks at its channels through a quarter of them
ROUNDED_TO = 8  # numbers of channels are multiples of it
ACTIVATIONS = {"RE": nn.ReLU, "HS": nn.Hardswish}

# kernel, width, channels, gate, activation, stride: the rows of the paper's table 1
FULL = {
    "image": 224,
    "classes": 1000,
    "stem": 16,
    "blocks": (
        (3, 16, 16, False, "RE", 1),
        (3, 64, 24, False, "RE", 2),
        (3, 72, 24, False, "RE", 1),
        (5, 72, 40, True, "RE", 2),
        (5, 120, 40, True, "RE", 1),
        (5, 120, 40, True, "RE", 1),
        (3, 240, 80, False, "HS", 2),
        (3, 200, 80, False, "HS", 1),
        (3, 184, 80, False, "HS", 1),
        (3, 184, 80, False, "HS", 1),
        (3, 480, 112, True, "HS", 1),
        (3, 672, 112, True, "HS", 1),
        (5, 672, 160, True, "HS", 2),
        (5, 960, 160, True, "HS", 1),
        (5, 960, 160, True, "HS", 1),
    ),
    "last": 960,
    "head": 1280,
}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels, with dropout before the classifier; an inference of one image at full
    size."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=32, eval_batch=32, shape=FULL),
        # 32 pixels leave 2x2 at the last block: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={
                "image": 32,
                "classes": 10,
                "stem": 16,
                "blocks": (
                    (3, 16, 16, False, "RE", 1),
                    (3, 48, 24, False, "RE", 2),
                    (5, 72, 32, True, "RE", 2),
                    (3, 96, 32, False, "HS", 1),
                    (5, 128, 40, True, "HS", 2),
                    (5, 160, 40, True, "HS", 1),
                ),
                "last": 160,
                "head": 128,
            },
        ),
    }

    def build_network(self) -> nn.Module:
        shape = self.shape
        return MobileNetV3(shape["stem"], shape["blocks"], shape["last"], shape["head"], shape["classes"])


class MobileNetV3(nn.Module):
    """A stem that halves the resolution, inverted residuals, a 1x1 convolution, a hidden layer that comes after the
    average over the image, and a linear classifier."""

    def __init__(
        self,
        stem: int,
        blocks: Sequence[tuple[int, int, int, bool, str, int]],
        last: int,
        head: int,
        classes: int,
    ) -> None:
        super().__init__()
        layers = [*normalized_convolution(COLOURS, stem, kernel=3, stride=2), nn.Hardswish(inplace=True)]
        channels = stem
        for kernel, width, outputs, gated, activation, stride in blocks:
            layers.append(
                InvertedResidual(
                    channels,
                    width,
                    outputs,
                    kernel=kernel,
                    stride=stride,
                    activation=ACTIVATIONS[activation],
                    gate=ChannelGate(width) if gated else None,
                )
            )
            channels = outputs
        layers += [*normalized_convolution(channels, last, kernel=1), nn.Hardswish(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(last, head), nn.Hardswish(inplace=True), nn.Dropout(DROPOUT), nn.Linear(head, classes)
        )
        set_normalizations(self, MOMENTUM, EPSILON)
        initialize_convolutions(self)
        initialize_linear_layers(self, deviation=0.01)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.pool(self.features(images)).flatten(1))


class ChannelGate(nn.Module):
    """Every channel times a share that two 1x1 convolutions read from the averages of all (Hu et al. 2017)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = rounded(channels // SQUEEZE)
        self.share = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, kernel_size=1),
            nn.ReLU(),
            nn.Conv2d(squeezed, channels, kernel_size=1),
            nn.Hardsigmoid(),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.share(features) * features


def rounded(channels: int) -> int:
    """The nearest multiple of 8, a half upwards, or the next one where that would lose more than a tenth."""
    nearest = max(ROUNDED_TO, (channels + ROUNDED_TO // 2) // ROUNDED_TO * ROUNDED_TO)
    return nearest if nearest >= 0.9 * channels else nearest + ROUNDED_TO
