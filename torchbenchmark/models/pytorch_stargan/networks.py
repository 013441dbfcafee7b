"""The two networks of StarGAN (Choi et al. 2018, tables 4 and 5)."""

import torch
from torch import nn

COLOURS = 3
EDGE_KERNEL = 7
LEAK = 0.01


class Generator(nn.Module):
    """From an image and the wanted attributes, spread over the image as further channels, to an image between -1 and 1.

    A wide convolution, two layers that halve the resolution, residual blocks, two that double it, a wide convolution.
    """

    def __init__(self, attributes: int, width: int, blocks: int) -> None:
        super().__init__()
        layers = normalized(nn.Conv2d(COLOURS + attributes, width, EDGE_KERNEL, padding=EDGE_KERNEL // 2, bias=False))
        for channels in (width, 2 * width):
            layers += normalized(nn.Conv2d(channels, 2 * channels, kernel_size=4, stride=2, padding=1, bias=False))
        layers += [ResidualBlock(4 * width) for _ in range(blocks)]
        for channels in (4 * width, 2 * width):
            halved = channels // 2
            layers += normalized(nn.ConvTranspose2d(channels, halved, kernel_size=4, stride=2, padding=1, bias=False))
        last = nn.Conv2d(width, COLOURS, EDGE_KERNEL, padding=EDGE_KERNEL // 2, bias=False)
        self.layers = nn.Sequential(*layers, last, nn.Tanh())

    def forward(self, images: torch.Tensor, attributes: torch.Tensor) -> torch.Tensor:
        maps = attributes[:, :, None, None].expand(-1, -1, images.shape[2], images.shape[3])
        return self.layers(torch.cat([images, maps], dim=1))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        first, second = (nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False) for _ in range(2))
        self.residual = nn.Sequential(*normalized(first), second, instance_norm(channels))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + self.residual(features)


class Discriminator(nn.Module):
    """Strided convolutions that double the channels; from what they leave, a map of scores, one of each patch, and the
    logits of the attributes."""

    def __init__(self, image: int, attributes: int, width: int, halvings: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = COLOURS
        for step in range(halvings):
            layers += [nn.Conv2d(channels, width * 2**step, kernel_size=4, stride=2, padding=1), nn.LeakyReLU(LEAK)]
            channels = width * 2**step
        self.layers = nn.Sequential(*layers)
        self.score = nn.Conv2d(channels, 1, kernel_size=3, padding=1, bias=False)
        self.classify = nn.Conv2d(channels, attributes, kernel_size=image // 2**halvings, bias=False)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.layers(images)
        return self.score(features), self.classify(features).flatten(1)


def normalized(convolution: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
    return [convolution, instance_norm(convolution.out_channels), nn.ReLU(inplace=True)]


def instance_norm(channels: int) -> nn.Module:
    """With weights of its own, and with running statistics, which an inference uses."""
    return nn.InstanceNorm2d(channels, affine=True, track_running_stats=True)
