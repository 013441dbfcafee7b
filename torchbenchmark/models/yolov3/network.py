"""YOLOv3 with spatial pyramid pooling (Redmon and Farhadi, YOLOv3, 2018; He et al., Spatial Pyramid Pooling, 2014)."""

from collections.abc import Sequence

import torch
from torch import nn

COLOURS = 3
LEAK = 0.1
POOLS = (5, 9, 13)
SMALL = 0.25  # what weights begin with, as a share of what keeps the variance, where they would make it grow
BOX = 5  # numbers of a box beside its classes: centre, size, objectness
STRIDES = (32, 16, 8)  # coarse, middle, fine: the order in which the network finds and returns them
ANCHORS = (  # width and height in pixels, of COCO's boxes
    ((116, 90), (156, 198), (373, 326)),
    ((30, 61), (62, 45), (59, 119)),
    ((10, 13), (16, 30), (33, 23)),
)


class YoloV3(nn.Module):
    """Darknet-53 and, on its three last stages, heads that predict boxes from coarse to fine.

    Each output is [batch, anchors, height, width, BOX + classes], before any sigmoid.
    """

    def __init__(self, width: int, blocks: Sequence[int], classes: int) -> None:
        super().__init__()
        self.outputs = BOX + classes
        self.stem = nn.Sequential(
            convolution(COLOURS, width, 3), stage(width, blocks[0]), stage(2 * width, blocks[1])
        )  # a quarter of the resolution
        self.fine_stage = stage(4 * width, blocks[2])
        self.middle_stage = stage(8 * width, blocks[3])
        self.coarse_stage = stage(16 * width, blocks[4])

        half = 16 * width
        self.coarse_neck = nn.Sequential(
            *alternating(2 * half, half, 3), PyramidPooling(), *alternating((len(POOLS) + 1) * half, half, 3)
        )
        self.middle_neck = nn.Sequential(*alternating(8 * width + 16 * width, 8 * width, 5))
        self.fine_neck = nn.Sequential(*alternating(4 * width + 8 * width, 4 * width, 5))
        self.coarse_to_middle = enlarging(16 * width)
        self.middle_to_fine = enlarging(8 * width)
        self.coarse_head = head(16 * width, self.outputs)
        self.middle_head = head(8 * width, self.outputs)
        self.fine_head = head(4 * width, self.outputs)
        initialize(self)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        fine = self.fine_stage(self.stem(images))
        middle = self.middle_stage(fine)
        coarse = self.coarse_neck(self.coarse_stage(middle))
        middle = self.middle_neck(torch.cat([self.coarse_to_middle(coarse), middle], dim=1))
        fine = self.fine_neck(torch.cat([self.middle_to_fine(middle), fine], dim=1))
        return (
            self.by_box(self.coarse_head(coarse)),
            self.by_box(self.middle_head(middle)),
            self.by_box(self.fine_head(fine)),
        )

    def by_box(self, maps: torch.Tensor) -> torch.Tensor:
        """From [batch, anchors * outputs, height, width] to the numbers of a box side by side."""
        return maps.unflatten(1, [-1, self.outputs]).permute(0, 1, 3, 4, 2).contiguous()


class Detector(nn.Module):
    """The network and what its numbers mean for images of one size: [batch, boxes, BOX + classes], centre and size in
    pixels, objectness and classes between 0 and 1."""

    def __init__(self, network: nn.Module, height: int, width: int) -> None:
        super().__init__()
        self.network = network
        self.coarse, self.middle, self.fine = (
            BoxDecoder(height // stride, width // stride, stride, anchors)
            for stride, anchors in zip(STRIDES, ANCHORS, strict=True)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        coarse, middle, fine = self.network(images)
        return torch.cat([self.coarse(coarse), self.middle(middle), self.fine(fine)], dim=1)


class BoxDecoder(nn.Module):
    """A centre lies inside of its cell, a size is a multiple of the anchor's."""

    def __init__(self, rows: int, columns: int, stride: int, anchors: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self.stride = stride
        row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        self.register_buffer("cells", torch.stack([column, row], dim=-1).float(), persistent=False)
        self.register_buffer("anchors", torch.tensor(anchors).float()[:, None, None], persistent=False)

    def forward(self, raw: torch.Tensor) -> torch.Tensor:
        centre = (raw[..., :2].sigmoid() + self.cells) * self.stride
        size = raw[..., 2:4].exp() * self.anchors
        return torch.cat([centre, size, raw[..., 4:].sigmoid()], dim=-1).flatten(1, 3)


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(convolution(channels, channels // 2, 1), convolution(channels // 2, channels, 3))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + self.residual(features)


class PyramidPooling(nn.Module):
    """The features beside their maxima over three neighbourhoods."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.medium, self.large = (nn.MaxPool2d(size, stride=1, padding=size // 2) for size in POOLS)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.cat([features, self.small(features), self.medium(features), self.large(features)], dim=1)


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs, eps=1e-4, momentum=0.03),
        nn.LeakyReLU(LEAK, inplace=True),
    )


def stage(channels: int, blocks: int) -> nn.Sequential:
    """Half the resolution, twice the channels, then residual blocks."""
    residual = (ResidualBlock(2 * channels) for _ in range(blocks))
    return nn.Sequential(convolution(channels, 2 * channels, 3, stride=2), *residual)


def alternating(inputs: int, channels: int, count: int) -> list[nn.Module]:
    """Convolutions 1x1 to `channels` and 3x3 to twice as many in turn; the first and the last are 1x1."""
    layers: list[nn.Module] = [convolution(inputs, channels, 1)]
    while len(layers) < count:
        layers += [convolution(channels, 2 * channels, 3), convolution(2 * channels, channels, 1)]
    return layers


def enlarging(channels: int) -> nn.Sequential:
    """Half the channels at twice the resolution."""
    return nn.Sequential(convolution(channels, channels // 2, 1), nn.Upsample(scale_factor=2.0, mode="nearest"))


def head(channels: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        convolution(channels, 2 * channels, 3), nn.Conv2d(2 * channels, len(ANCHORS[0]) * outputs, kernel_size=1)
    )


def initialize(network: nn.Module) -> None:
    """Weights that keep the variance (He et al. 2015), less where sums of residuals or exponentials would make it grow:
    an untrained network then still finds boxes that differ, of sizes that do not overflow."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, a=LEAK)
            if layer.bias is not None:  # of a head
                nn.init.zeros_(layer.bias)
                with torch.no_grad():
                    layer.weight.mul_(SMALL)
    for block in network.modules():
        if isinstance(block, ResidualBlock):
            nn.init.constant_(block.residual[1][1].weight, SMALL)
