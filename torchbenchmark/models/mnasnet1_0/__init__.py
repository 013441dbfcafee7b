"""mnasnet1_0: a mobile network found by search (Tan et al. 2018), the paper's figure 7 without its gates."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.convolution import (
    initialize_convolutions,
    normalized_convolution,
    set_normalizations,
)
from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.families.inverted_residual import InvertedResidual
from torchbenchmark.model import Preset

DROPOUT = 0.2
MOMENTUM = 3e-4  # of the running statistics: a batch moves them little
EPSILON = 1e-5
FULL = {
    "image": 224,
    "classes": 1000,
    "stem": (32, 16),
    "stages": (
        (3, 24, 3, 3, 2),
        (3, 40, 3, 5, 2),
        (6, 80, 3, 5, 2),
        (6, 96, 2, 3, 1),
        (6, 192, 4, 5, 2),
        (6, 320, 1, 3, 1),
    ),
    "head": 1280,
}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels, with dropout before the classifier; an inference of one image at full
    size.

    `stem` is the channels of the first convolution and of the separable one after it; each of `stages` is (expansion,
    channels, blocks, kernel, stride of the first block).
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=32, eval_batch=32, shape=FULL),
        # 32 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={
                "image": 32,
                "classes": 10,
                "stem": (16, 8),
                "stages": ((3, 16, 2, 3, 2), (6, 24, 1, 5, 2), (6, 32, 2, 5, 2), (6, 40, 1, 3, 1)),
                "head": 64,
            },
        ),
    }

    def build_network(self) -> nn.Module:
        return MnasNet(self.shape["stem"], self.shape["stages"], self.shape["head"], self.shape["classes"])


class MnasNet(nn.Module):
    """A stem that halves the resolution, a separable convolution, stages of inverted residuals, a 1x1 convolution and a
    linear classifier."""

    def __init__(
        self, stem: tuple[int, int], stages: Sequence[tuple[int, int, int, int, int]], head: int, classes: int
    ) -> None:
        super().__init__()
        first, channels = stem
        layers = [
            *normalized_convolution(COLOURS, first, kernel=3, stride=2),
            nn.ReLU(inplace=True),
            *normalized_convolution(first, first, kernel=3, groups=first),
            nn.ReLU(inplace=True),
            *normalized_convolution(first, channels, kernel=1),
        ]
        for expansion, outputs, depth, kernel, first_stride in stages:
            for position in range(depth):
                stride = first_stride if position == 0 else 1
                width = channels * expansion
                layers.append(
                    InvertedResidual(channels, width, outputs, kernel=kernel, stride=stride, activation=nn.ReLU)
                )
                channels = outputs
        layers += [*normalized_convolution(channels, head, kernel=1), nn.ReLU(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(head, classes)
        set_normalizations(self, MOMENTUM, EPSILON)
        initialize_convolutions(self)
        nn.init.kaiming_uniform_(self.classifier.weight, mode="fan_out", nonlinearity="sigmoid")
        nn.init.zeros_(self.classifier.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.features(images)).flatten(1)
        return self.classifier(self.dropout(features))
