"""The block of the mobile networks: wide inside, narrow at its ends (Sandler et al. 2018)."""

from torch import Tensor, nn

from torchbenchmark.families.convolution import normalized_convolution


class InvertedResidual(nn.Module):
    """A 1x1 convolution that widens, a depthwise one, a gate if there is one, and a 1x1 that narrows without
    activation; a shortcut from narrow to narrow where the shape stays.

    `activation` is the class that follows the first two convolutions. Where `width` is `channels`, nothing is widened.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        outputs: int,
        *,
        kernel: int = 3,
        stride: int = 1,
        activation: type[nn.ReLU | nn.ReLU6 | nn.Hardswish],
        gate: nn.Module | None = None,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if width != channels:
            layers += [*normalized_convolution(channels, width, kernel=1), activation(inplace=True)]
        layers += [*normalized_convolution(width, width, kernel, stride, groups=width), activation(inplace=True)]
        if gate is not None:
            layers.append(gate)
        layers += normalized_convolution(width, outputs, kernel=1)
        self.layers = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and channels == outputs

    def forward(self, features: Tensor) -> Tensor:
        residual = self.layers(features)
        return features + residual if self.has_shortcut else residual
