"""shufflenet_v2_x1_0: half the channels pass a unit by, and the halves are shuffled behind it (Ma et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.families.convolution import normalized_convolution
from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier
from torchbenchmark.model import Preset

BRANCHES = 2
FULL = {"image": 224, "classes": 1000, "stem": 24, "stages": ((116, 4), (232, 8), (464, 4)), "head": 1024}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels; an inference of one image at full size.

    Each of `stages` is (channels, units), the first unit of which halves the resolution.
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=128, eval_batch=64, shape=FULL),
        # 32 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={"image": 32, "classes": 10, "stem": 16, "stages": ((32, 3), (64, 2)), "head": 96},
        ),
    }

    def build_network(self) -> nn.Module:
        return ShuffleNetV2(self.shape["stem"], self.shape["stages"], self.shape["head"], self.shape["classes"])


class ShuffleNetV2(nn.Module):
    """A stem that divides the resolution by 4, stages of units, a 1x1 convolution and a linear classifier. The weights
    begin as torch's layers do."""

    def __init__(self, stem: int, stages: Sequence[tuple[int, int]], head: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            *normalized_convolution(COLOURS, stem, kernel=3, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        ]
        channels = stem
        for outputs, depth in stages:
            layers.append(DownsamplingUnit(channels, outputs))
            layers += [BasicUnit(outputs) for _ in range(depth - 1)]
            channels = outputs
        layers += [*normalized_convolution(channels, head, kernel=1), nn.ReLU(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(head, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.pool(self.features(images)).flatten(1))


class BasicUnit(nn.Module):
    """One half of the channels stays as it is, the other goes through the convolutions."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // BRANCHES
        self.convolutions = branch(half, half, stride=1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        kept, changed = features.chunk(2, dim=1)
        return shuffled(torch.cat([kept, self.convolutions(changed)], dim=1))


class DownsamplingUnit(nn.Module):
    """All channels go through both branches, each of which halves the resolution."""

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        half = outputs // BRANCHES
        self.separable = nn.Sequential(
            *normalized_convolution(channels, channels, kernel=3, stride=2, groups=channels),
            *normalized_convolution(channels, half, kernel=1),
            nn.ReLU(inplace=True),
        )
        self.convolutions = branch(channels, half, stride=2)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return shuffled(torch.cat([self.separable(features), self.convolutions(features)], dim=1))


def branch(channels: int, outputs: int, stride: int) -> nn.Sequential:
    """A depthwise convolution, without activation, between two of 1x1."""
    return nn.Sequential(
        *normalized_convolution(channels, outputs, kernel=1),
        nn.ReLU(inplace=True),
        *normalized_convolution(outputs, outputs, kernel=3, stride=stride, groups=outputs),
        *normalized_convolution(outputs, outputs, kernel=1),
        nn.ReLU(inplace=True),
    )


def shuffled(features: torch.Tensor) -> torch.Tensor:
    """The channels of the two halves in turn: first of the one, first of the other, second of the one, and so on."""
    batch, channels, height, width = features.shape
    halves = features.view(batch, 2, channels // 2, height, width)
    return halves.transpose(1, 2).reshape(batch, channels, height, width)
