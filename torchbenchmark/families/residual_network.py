"""Residual networks for image classification (He et al. 2015), written in plain torch.

The bottleneck halves the resolution in its 3x3 convolution, not in the 1x1 before it: the variant called 1.5, which is
torchvision's and V1's.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import nn

from torchbenchmark.families.convolution import initialize_convolutions, normalized_convolution
from torchbenchmark.families.image_classifier import COLOURS


class ResidualBlock(nn.Module):
    """Convolutions beside a shortcut, which is a 1x1 projection where the shape changes."""

    EXPANSION: ClassVar[int]  # channels that come out, as a multiple of the width

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.EXPANSION
        self.residual = self.build_residual(channels, width, stride)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != outputs:
            self.shortcut = nn.Sequential(*normalized_convolution(channels, outputs, kernel=1, stride=stride))
        self.activation = nn.ReLU(inplace=True)

    def build_residual(self, channels: int, width: int, stride: int) -> nn.Sequential:
        raise NotImplementedError

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.activation(self.residual(features) + self.shortcut(features))


class BasicBlock(ResidualBlock):
    """Two 3x3 convolutions."""

    EXPANSION = 1

    def build_residual(self, channels: int, width: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            *normalized_convolution(channels, width, kernel=3, stride=stride),
            nn.ReLU(inplace=True),
            *normalized_convolution(width, width, kernel=3),
        )


class Bottleneck(ResidualBlock):
    """A 3x3 convolution between a 1x1 that narrows and a 1x1 that widens."""

    EXPANSION = 4

    def build_residual(self, channels: int, width: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            *normalized_convolution(channels, width, kernel=1),
            nn.ReLU(inplace=True),
            *normalized_convolution(width, width, kernel=3, stride=stride),
            nn.ReLU(inplace=True),
            *normalized_convolution(width, width * self.EXPANSION, kernel=1),
        )


class ResidualNetwork(nn.Module):
    """A stem that divides the resolution by 4, stages of blocks that halve it from the second on, and a classifier."""

    def __init__(self, block: type[ResidualBlock], widths: Sequence[int], blocks: Sequence[int], classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *normalized_convolution(COLOURS, widths[0], kernel=7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        stages = []
        channels = widths[0]
        for stage, (width, depth) in enumerate(zip(widths, blocks, strict=True)):
            for position in range(depth):
                halve = stage > 0 and position == 0
                stages.append(block(channels, width, stride=2 if halve else 1))
                channels = width * block.EXPANSION
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)
        initialize_convolutions(self)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.stages(self.stem(images)))
        return self.classifier(features.flatten(1))
