"""How far a matte is from another and from explaining its picture (Sengupta et al. 2020).

Opacities lie between -1 and 1, as pictures do, and are brought to shares where pictures are mixed.
"""

import torch
from torch import nn
from torch.nn import functional

GRADIENT_WEIGHT = 0.5


class SlopeDistance(nn.Module):
    """The mean absolute difference of slopes, horizontal and vertical, by Sobel's filters."""

    def __init__(self) -> None:
        super().__init__()
        horizontal = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.register_buffer("filters", torch.stack([horizontal, horizontal.t()])[:, None])

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Both sums over the pair of filters, [batch, 1, height, width] each."""
        return 2 * functional.l1_loss(self.slopes(first), self.slopes(second))

    def slopes(self, images: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(images, self.filters, padding=1)


def opacity_loss(opacity: torch.Tensor, wanted: torch.Tensor, slope_distance: nn.Module) -> torch.Tensor:
    return functional.l1_loss(opacity, wanted) + GRADIENT_WEIGHT * slope_distance(opacity, wanted)


def masked_distance(images: torch.Tensor, wanted: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The absolute difference, summed over colours, of the pixels where `mask`, [batch, 1, height, width], is true:
    averaged over these pixels of a picture, then over pictures. One without such pixels has no difference."""
    difference = ((images - wanted).abs() * mask).flatten(1).sum(dim=1)
    return (difference / mask.flatten(1).sum(dim=1).clamp(min=1)).mean()


def compose(opacity: torch.Tensor, foreground: torch.Tensor, background: torch.Tensor) -> torch.Tensor:
    """The foreground over the background."""
    share = (opacity + 1) / 2
    return share * foreground + (1 - share) * background
