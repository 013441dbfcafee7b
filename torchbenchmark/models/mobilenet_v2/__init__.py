"""mobilenet_v2: inverted residuals with depthwise convolutions (Sandler et al. 2018), written here in plain torch."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.convolution import (
    initialize_convolutions,
    initialize_linear_layers,
    normalized_convolution,
)
from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.families.inverted_residual import InvertedResidual
from torchbenchmark.model import Preset

DROPOUT = 0.2
FULL = {
    "image": 224,
    "classes": 1000,
    "stem": 32,
    "stages": (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ),
    "head": 1280,
}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels, with dropout before the classifier; an inference of one image at full
    size.

    Each of `stages` is (expansion, channels, blocks, stride of the first block), a row of the paper's table 2.
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=96, eval_batch=16, shape=FULL),
        # 32 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={
                "image": 32,
                "classes": 10,
                "stem": 8,
                "stages": ((1, 8, 1, 1), (4, 16, 2, 2), (4, 24, 1, 2), (4, 32, 1, 2)),
                "head": 64,
            },
        ),
    }

    def build_network(self) -> nn.Module:
        return MobileNetV2(self.shape["stem"], self.shape["stages"], self.shape["head"], self.shape["classes"])


class MobileNetV2(nn.Module):
    """A stem that halves the resolution, stages of inverted residuals, a 1x1 convolution and a linear classifier."""

    def __init__(self, stem: int, stages: Sequence[tuple[int, int, int, int]], head: int, classes: int) -> None:
        super().__init__()
        layers = [*normalized_convolution(COLOURS, stem, kernel=3, stride=2), nn.ReLU6(inplace=True)]
        channels = stem
        for expansion, outputs, depth, first_stride in stages:
            for position in range(depth):
                stride = first_stride if position == 0 else 1
                width = channels * expansion
                layers.append(InvertedResidual(channels, width, outputs, stride=stride, activation=nn.ReLU6))
                channels = outputs
        layers += [*normalized_convolution(channels, head, kernel=1), nn.ReLU6(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(head, classes)
        initialize_convolutions(self)
        initialize_linear_layers(self, deviation=0.01)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.features(images)).flatten(1)
        return self.classifier(self.dropout(features))
