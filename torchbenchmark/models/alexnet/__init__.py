"""alexnet: five convolutions and three linear layers (Krizhevsky et al. 2012), on one GPU (Krizhevsky 2014)."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.model import Preset

DROPOUT = 0.5
FULL = {"image": 224, "classes": 1000, "channels": (64, 192, 384, 256, 256), "pooled": 6, "hidden": 4096}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels, with dropout before both hidden layers; an inference of one image at
    full size."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=128, eval_batch=128, shape=FULL),
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={"image": 96, "classes": 10, "channels": (16, 48, 96, 64, 64), "pooled": 2, "hidden": 256},
        ),
    }

    def build_network(self) -> nn.Module:
        shape = self.shape
        return AlexNet(shape["channels"], shape["pooled"], shape["hidden"], shape["classes"])


class AlexNet(nn.Module):
    """Convolutions of 11x11, 5x5 and three times 3x3, the first two and the last of them with overlapping pooling, then
    two hidden layers and a linear classifier. The weights begin as torch's layers do."""

    def __init__(self, channels: Sequence[int], pooled: int, hidden: int, classes: int) -> None:
        super().__init__()
        first, second, third, fourth, fifth = channels
        self.features = nn.Sequential(
            nn.Conv2d(COLOURS, first, kernel_size=11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(first, second, kernel_size=5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(second, third, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(third, fourth, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(fourth, fifth, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.AdaptiveAvgPool2d(pooled),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(DROPOUT),
            nn.Linear(fifth * pooled * pooled, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(DROPOUT),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, classes),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images).flatten(1))
