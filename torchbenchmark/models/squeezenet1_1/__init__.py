"""squeezenet1_1: fire modules in place of wide convolutions (Iandola et al. 2016), the authors' cheaper version 1.1."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.model import Preset

DROPOUT = 0.5
FULL = {
    "image": 224,
    "classes": 1000,
    "stem": 64,
    "stages": (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256))),
}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels, with dropout before the classifier; an inference of one image at full
    size.

    Each of `stages` is a row of fire modules, (squeezed channels, channels of each of the two expansions).
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=32, eval_batch=16, shape=FULL),
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={
                "image": 64,
                "classes": 10,
                "stem": 32,
                "stages": (((8, 32), (8, 32)), ((16, 64),), ((24, 96), (32, 128))),
            },
        ),
    }

    def build_network(self) -> nn.Module:
        return SqueezeNet(self.shape["stem"], self.shape["stages"], self.shape["classes"])


class SqueezeNet(nn.Module):
    """A stem, stages of fire modules, each behind a pooling that halves the resolution, and a convolution with one
    channel a class, whose average over the image is the output."""

    def __init__(self, stem: int, stages: Sequence[Sequence[tuple[int, int]]], classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(COLOURS, stem, kernel_size=3, stride=2), nn.ReLU(inplace=True)]
        channels = stem
        for stage in stages:
            layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
            for squeezed, expanded in stage:
                layers.append(Fire(channels, squeezed, expanded))
                channels = 2 * expanded
        self.features = nn.Sequential(*layers)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Conv2d(channels, classes, kernel_size=1)
        self.output = nn.Sequential(nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self._initialize()

    def _initialize(self) -> None:
        """Uniform weights that keep the variance of a layer's inputs through a ReLU (He et al. 2015), and no bias; the
        classifier's are normal and small."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)
        nn.init.normal_(self.classifier.weight, std=0.01)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.output(self.classifier(self.dropout(self.features(images))))


class Fire(nn.Module):
    """A 1x1 convolution that squeezes the channels, then a 1x1 and a 3x3 beside each other that expand them."""

    def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(channels, squeezed, kernel_size=1), nn.ReLU(inplace=True))
        self.narrow = nn.Sequential(nn.Conv2d(squeezed, expanded, kernel_size=1), nn.ReLU(inplace=True))
        self.wide = nn.Sequential(nn.Conv2d(squeezed, expanded, kernel_size=3, padding=1), nn.ReLU(inplace=True))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        squeezed = self.squeeze(features)
        return torch.cat([self.narrow(squeezed), self.wide(squeezed)], dim=1)
