"""The network that mattes a person out of a picture, given the background without the person (Sengupta et al. 2020)."""

import torch
from torch import nn

from torchbenchmark.families.residual_generator import COLOURS, edge_convolution, encoder, reflecting_blocks

FRAMES = 4  # grey pictures from before and after, from which motion is seen
SEGMENTATION = 1


class MattingNetwork(nn.Module):
    """From picture, background, segmentation and motion, all between -1 and 1, to opacity and foreground.

    Four encoders; a selector each for what background, segmentation and motion add to the picture; shared residual
    blocks; and a branch each, with blocks of its own, for opacity (between -1 and 1) and colours of the foreground.
    """

    def __init__(self, width: int, shared_blocks: int, branch_blocks: int) -> None:
        super().__init__()
        deep = 4 * width
        whole = encoder(COLOURS, width, nn.BatchNorm2d)
        halved = 7  # layers after which the picture's features are at half its resolution; the foreground sees them
        self.picture_to_half, self.picture_to_quarter = whole[:halved], whole[halved:]
        self.background_encoder = encoder(COLOURS, width, nn.BatchNorm2d)
        self.segmentation_encoder = encoder(SEGMENTATION, width, nn.BatchNorm2d)
        self.motion_encoder = encoder(FRAMES, width, nn.BatchNorm2d)
        self.select_background = pointwise(2 * deep, width)
        self.select_segmentation = pointwise(2 * deep, width)
        self.select_motion = pointwise(2 * deep, width)
        self.combine = pointwise(deep + 3 * width, deep)
        self.shared = reflecting_blocks(shared_blocks, deep, nn.BatchNorm2d)

        self.opacity = nn.Sequential(
            reflecting_blocks(branch_blocks, deep, nn.BatchNorm2d),
            doubling(deep, 2 * width),
            doubling(2 * width, width),
            *edge_convolution(width, 1),
            nn.Tanh(),
        )
        self.foreground_to_half = nn.Sequential(
            reflecting_blocks(branch_blocks, deep, nn.BatchNorm2d), doubling(deep, 2 * width)
        )
        self.foreground = nn.Sequential(doubling(4 * width, width), *edge_convolution(width, COLOURS))

    def forward(
        self, picture: torch.Tensor, background: torch.Tensor, segmentation: torch.Tensor, motion: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        half = self.picture_to_half(picture)
        seen = self.picture_to_quarter(half)
        selected = [
            self.select_background(torch.cat([seen, self.background_encoder(background)], dim=1)),
            self.select_segmentation(torch.cat([seen, self.segmentation_encoder(segmentation)], dim=1)),
            self.select_motion(torch.cat([seen, self.motion_encoder(motion)], dim=1)),
        ]
        shared = self.shared(self.combine(torch.cat([seen, selected[0], selected[1], selected[2]], dim=1)))
        foreground = self.foreground(torch.cat([self.foreground_to_half(shared), half], dim=1))
        return self.opacity(shared), foreground


def pointwise(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


def doubling(inputs: int, outputs: int) -> nn.Sequential:
    """Twice the resolution, by interpolation and then a convolution."""
    return nn.Sequential(
        nn.Upsample(scale_factor=2.0, mode="bilinear", align_corners=True),
        nn.Conv2d(inputs, outputs, kernel_size=3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )
