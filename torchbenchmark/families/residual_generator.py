"""Parts of the generators that translate images through residual blocks at a quarter of the resolution.

As Johnson et al. (Perceptual Losses for Real-Time Style Transfer, 2016) and Zhu et al. (CycleGAN, 2017) build them:
edges are padded by reflection, and every convolution is followed by a normalization of the caller's choice.
"""

from collections.abc import Callable

import torch
from torch import nn

COLOURS = 3
EDGE_KERNEL = 7  # of the first and the last convolution, which work at full resolution

Normalization = Callable[[int], nn.Module]  # from channels to a layer


def edge_convolution(inputs: int, outputs: int) -> list[nn.Module]:
    """A wide convolution at full resolution, padded by reflection."""
    return [nn.ReflectionPad2d(EDGE_KERNEL // 2), nn.Conv2d(inputs, outputs, EDGE_KERNEL)]


def encoder(inputs: int, width: int, normalization: Normalization) -> nn.Sequential:
    """From an image to `4 * width` channels at a quarter of its resolution."""
    layers = [*edge_convolution(inputs, width), normalization(width), nn.ReLU(inplace=True)]
    for channels in (width, 2 * width):
        layers += [
            nn.Conv2d(channels, 2 * channels, kernel_size=3, stride=2, padding=1),
            normalization(2 * channels),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)


class ReflectingBlock(nn.Module):
    """Two 3x3 convolutions padded by reflection, beside a shortcut; nothing follows the sum."""

    def __init__(self, channels: int, normalization: Normalization) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(channels, channels, kernel_size=3),
            normalization(channels),
            nn.ReLU(inplace=True),
            nn.ReflectionPad2d(1),
            nn.Conv2d(channels, channels, kernel_size=3),
            normalization(channels),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + self.residual(features)


def reflecting_blocks(count: int, channels: int, normalization: Normalization) -> nn.Sequential:
    return nn.Sequential(*(ReflectingBlock(channels, normalization) for _ in range(count)))
