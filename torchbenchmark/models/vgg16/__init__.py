"""vgg16: thirteen 3x3 convolutions and three linear layers (Simonyan & Zisserman 2014), their configuration D."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.convolution import initialize_convolutions, initialize_linear_layers
from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.model import Preset

DROPOUT = 0.5
FULL = {
    "image": 224,
    "classes": 1000,
    "stages": ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)),
    "pooled": 7,
    "hidden": 4096,
}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels, with dropout behind both hidden layers; an inference of one image at
    full size.

    Each of `stages` is (channels, convolutions).
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=64, eval_batch=4, shape=FULL),
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={
                "image": 32,
                "classes": 10,
                "stages": ((16, 2), (32, 2), (64, 3)),
                "pooled": 4,
                "hidden": 256,
            },
        ),
    }

    def build_network(self) -> nn.Module:
        shape = self.shape
        return VGG(shape["stages"], shape["pooled"], shape["hidden"], shape["classes"])


class VGG(nn.Module):
    """Stages of 3x3 convolutions, each followed by a pooling that halves the resolution, then two hidden layers and a
    linear classifier."""

    def __init__(self, stages: Sequence[tuple[int, int]], pooled: int, hidden: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = COLOURS
        for outputs, depth in stages:
            for _ in range(depth):
                layers += [nn.Conv2d(channels, outputs, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
                channels = outputs
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(pooled))
        self.classifier = nn.Sequential(
            nn.Linear(channels * pooled * pooled, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(DROPOUT),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(DROPOUT),
            nn.Linear(hidden, classes),
        )
        initialize_convolutions(self)
        initialize_linear_layers(self, deviation=0.01)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images).flatten(1))
