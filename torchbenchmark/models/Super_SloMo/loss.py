"""What an interpolated frame is judged by: colours, features of VGG-16, warping and smoothness of the motion."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.convolution import initialize_convolutions
from torchbenchmark.families.image_classifier import COLOURS
from torchbenchmark.models.Super_SloMo.network import BackwardWarp

# the paper's weights are of colours up to 255, ours are up to 1
RECONSTRUCTION, PERCEPTION, WARPING, SMOOTHNESS = 0.8 * 255, 0.005, 0.4 * 255, 1.0


class InterpolationLoss(nn.Module):
    """The weighted sum of the paper's four losses. `widths` are those of the stages of VGG-16 up to its conv4_3."""

    def __init__(self, warp: BackwardWarp, widths: Sequence[int]) -> None:
        super().__init__()
        self.warp = warp
        self.perception = perception_network(widths)

    def forward(
        self,
        outputs: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
        first: torch.Tensor,
        between: torch.Tensor,
        last: torch.Tensor,
    ) -> torch.Tensor:
        """`outputs` are those of the network for `first` and `last`, `between` is the frame that was there."""
        frame, forth, back, rough_first, rough_last = outputs
        perception = functional.mse_loss(self.perception(frame), self.perception(between))
        warping = (
            functional.l1_loss(rough_first, between)
            + functional.l1_loss(rough_last, between)
            + functional.l1_loss(self.warp(last, forth), first)
            + functional.l1_loss(self.warp(first, back), last)
        )
        return (
            RECONSTRUCTION * functional.l1_loss(frame, between)
            + PERCEPTION * perception
            + WARPING * warping
            + SMOOTHNESS * (roughness(forth) + roughness(back))
        )


def roughness(motion: torch.Tensor) -> torch.Tensor:
    """Mean absolute difference between neighbours, along rows and along columns."""
    return motion.diff(dim=3).abs().mean() + motion.diff(dim=2).abs().mean()


def perception_network(widths: Sequence[int]) -> nn.Sequential:
    """VGG-16 up to conv4_3, frozen: two convolutions in each of the first two stages, three in the next two."""
    layers: list[nn.Module] = []
    channels = COLOURS
    for stage, (width, depth) in enumerate(zip(widths, (2, 2, 3, 3), strict=True)):
        if stage > 0:
            layers.append(nn.MaxPool2d(2))
        for _ in range(depth):
            layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU()]
            channels = width
    network = nn.Sequential(*layers[:-1])
    initialize_convolutions(network)
    return network.requires_grad_(False)
