"""The discriminator that judges patches (Isola et al., pix2pix, 2017), and the game of least squares it plays (Mao et
al., LSGAN, 2017)."""

import torch
from torch import nn

LEAK = 0.2
KERNEL = 4


class PatchDiscriminator(nn.Module):
    """A map of scores, each of one patch: 70 x 70 pixels with the paper's three halvings. Widths double up to
    8 * `width`; instance normalization everywhere but first and last."""

    def __init__(self, colours: int, width: int, halvings: int = 3, padding: int = 1) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(colours, width, KERNEL, stride=2, padding=padding),
            nn.LeakyReLU(LEAK, True),
        ]
        channels = width
        for step in range(1, halvings + 1):
            outputs = width * min(2**step, 8)
            layers += [
                nn.Conv2d(channels, outputs, KERNEL, stride=2 if step < halvings else 1, padding=padding),
                nn.InstanceNorm2d(outputs),
                nn.LeakyReLU(LEAK, True),
            ]
            channels = outputs
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels, 1, KERNEL, padding=padding))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


def distance_to_real(scores: torch.Tensor) -> torch.Tensor:
    """The mean squared distance from the score of a real image, which is 1."""
    return (scores - 1).square().mean()


def distance_to_fake(scores: torch.Tensor) -> torch.Tensor:
    """The mean squared distance from the score of a made image, which is 0."""
    return scores.square().mean()


def discriminator_loss(scores_of_real: torch.Tensor, scores_of_fake: torch.Tensor) -> torch.Tensor:
    return 0.5 * (distance_to_real(scores_of_real) + distance_to_fake(scores_of_fake))
