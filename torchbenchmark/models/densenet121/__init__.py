"""densenet121: every layer reads the outputs of all layers of its block before it (Huang et al. 2016)."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.convolution import normalized_convolution
from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.model import Preset

BOTTLENECK = 4  # channels between the two convolutions of a layer, as a multiple of its growth
FULL = {"image": 224, "classes": 1000, "stem": 64, "growth": 32, "blocks": (6, 12, 24, 16)}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels; an inference of one image at full size."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=256, eval_batch=64, shape=FULL),
        # 32 pixels leave 2x2 in the last block: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={"image": 32, "classes": 10, "stem": 16, "growth": 8, "blocks": (2, 3, 2)},
        ),
    }

    def build_network(self) -> nn.Module:
        return DenseNet(self.shape["stem"], self.shape["growth"], self.shape["blocks"], self.shape["classes"])


class DenseNet(nn.Module):
    """A stem that divides the resolution by 4, dense blocks with a transition that halves it between them, and a linear
    classifier."""

    def __init__(self, stem: int, growth: int, blocks: Sequence[int], classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *normalized_convolution(COLOURS, stem, kernel=7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        layers: list[nn.Module] = []
        channels = stem
        for position, depth in enumerate(blocks):
            if position > 0:
                layers.append(transition(channels, channels // 2))
                channels //= 2
            layers.append(DenseBlock(channels, growth, depth))
            channels += depth * growth
        self.blocks = nn.Sequential(*layers)
        self.output = nn.Sequential(
            nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.classifier = nn.Linear(channels, classes)
        self._initialize()

    def _initialize(self) -> None:
        """Normal weights that keep the variance of a layer's inputs through a ReLU (He et al. 2015)."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.output(self.blocks(self.stem(images))))


class DenseBlock(nn.Module):
    """Layers of `growth` channels each; what went in and what each layer adds, side by side, comes out."""

    def __init__(self, channels: int, growth: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(dense_layer(channels + position * growth, growth) for position in range(depth))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        outputs = [features]
        for layer in self.layers:
            outputs.append(layer(torch.cat(outputs, dim=1)))
        return torch.cat(outputs, dim=1)


def dense_layer(channels: int, growth: int) -> nn.Sequential:
    """A 1x1 convolution that narrows and a 3x3, with the normalization and activation before each."""
    inner = BOTTLENECK * growth
    return nn.Sequential(
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels, inner, kernel_size=1, bias=False),
        nn.BatchNorm2d(inner),
        nn.ReLU(inplace=True),
        nn.Conv2d(inner, growth, kernel_size=3, padding=1, bias=False),
    )


def transition(channels: int, outputs: int) -> nn.Sequential:
    """Half the channels by a 1x1 convolution, then half the resolution by an average."""
    return nn.Sequential(
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels, outputs, kernel_size=1, bias=False),
        nn.AvgPool2d(kernel_size=2, stride=2),
    )
