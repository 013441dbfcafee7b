"""Super SloMo: a frame between two frames, from two U-Nets and the warping of both frames (Jiang et al. 2018)."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.image_classifier import COLOURS

LEAK = 0.1
FLOW = 2  # a displacement has two coordinates, in pixels: to the right and down
KERNELS = (7, 5, 3, 3, 3, 3)  # of the levels; large ones see long motions at full resolution


class SuperSloMo(nn.Module):
    """The first U-Net finds the motion between the frames, the second corrects what it means for the time between."""

    def __init__(self, image: int, width: int, levels: int) -> None:
        super().__init__()
        self.motion = UNet(2 * COLOURS, 2 * FLOW, width, levels)
        self.correction = UNet(4 * COLOURS + 4 * FLOW, 2 * FLOW + 1, width, levels)
        self.warp = BackwardWarp(image)

    def forward(
        self, first: torch.Tensor, last: torch.Tensor, time: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """`time` is [batch, 1, 1, 1], from 0 at `first` to 1 at `last`. Gives the frame of that time, the motions from
        first to last and from last to first, and both frames as the uncorrected motion warps them to that time."""
        forth, back = self.motion(torch.cat([first, last], dim=1)).chunk(2, dim=1)
        to_first, to_last = intermediate_motion(forth, back, time)
        rough_first, rough_last = self.warp(first, to_first), self.warp(last, to_last)

        seen = [first, last, forth, back, to_first, to_last, rough_first, rough_last]
        change_first, change_last, visibility = self.correction(torch.cat(seen, dim=1)).split([2, 2, 1], dim=1)
        first_warped = self.warp(first, to_first + change_first)
        last_warped = self.warp(last, to_last + change_last)
        visible = visibility.sigmoid()  # in the first frame; what is not, is in the last

        first_share, last_share = (1 - time) * visible, time * (1 - visible)
        frame = (first_share * first_warped + last_share * last_warped) / (first_share + last_share)
        return frame, forth, back, rough_first, rough_last


def intermediate_motion(
    forth: torch.Tensor, back: torch.Tensor, time: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """From the time between to the first and to the last frame, as if the motion there were smooth (equation 4)."""
    to_first = -(1 - time) * time * forth + time * time * back
    to_last = (1 - time) * (1 - time) * forth - time * (1 - time) * back
    return to_first, to_last


class BackwardWarp(nn.Module):
    """Each pixel is fetched, bilinearly, from where its motion points to; beyond the edge is black."""

    def __init__(self, image: int) -> None:
        super().__init__()
        centres = (2 * torch.arange(image) + 1) / image - 1  # in the coordinates of grid_sample, the image from -1 to 1
        rows, columns = torch.meshgrid(centres, centres, indexing="ij")
        self.register_buffer("places", torch.stack([columns, rows], dim=-1), persistent=False)
        self.pixel = 2 / image

    def forward(self, images: torch.Tensor, motion: torch.Tensor) -> torch.Tensor:
        places = self.places + self.pixel * motion.permute(0, 2, 3, 1)
        return functional.grid_sample(images, places, mode="bilinear", padding_mode="zeros", align_corners=False)


class UNet(nn.Module):
    """Levels that halve the resolution and double the channels, and as many that go back beside what they skipped."""

    def __init__(self, inputs: int, outputs: int, width: int, levels: int) -> None:
        super().__init__()
        widths = [width * 2 ** min(level, levels - 1) for level in range(levels + 1)]  # the deepest two are as wide
        self.begin = pair(inputs, width, KERNELS[0])
        self.down = nn.ModuleList(pair(widths[level], widths[level + 1], KERNELS[level + 1]) for level in range(levels))
        self.up = nn.ModuleList(Up(widths[level + 1], widths[level]) for level in reversed(range(levels)))
        self.end = nn.Sequential(nn.Conv2d(width, outputs, kernel_size=3, padding=1), nn.LeakyReLU(LEAK))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.begin(images)
        skipped: list[torch.Tensor] = []
        for down in self.down:
            skipped.append(features)
            features = down(functional.avg_pool2d(features, 2))
        for up in self.up:
            features = up(features, skipped.pop())
        return self.end(features)


class Up(nn.Module):
    """Twice the resolution, then a convolution without and one with the skipped features."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.narrow = nn.Sequential(nn.Conv2d(inputs, outputs, kernel_size=3, padding=1), nn.LeakyReLU(LEAK))
        self.join = nn.Sequential(nn.Conv2d(2 * outputs, outputs, kernel_size=3, padding=1), nn.LeakyReLU(LEAK))

    def forward(self, features: torch.Tensor, skipped: torch.Tensor) -> torch.Tensor:
        features = functional.interpolate(features, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.join(torch.cat([self.narrow(features), skipped], dim=1))


def pair(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    """Two convolutions that keep the resolution."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2),
        nn.LeakyReLU(LEAK),
        nn.Conv2d(outputs, outputs, kernel, padding=kernel // 2),
        nn.LeakyReLU(LEAK),
    )
