"""What convolutional networks are made of: convolutions with batch normalization, and how their weights begin."""

from torch import nn


def normalized_convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    """A convolution that keeps the resolution up to its stride, without the bias that the normalization would undo."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


def initialize_convolutions(network: nn.Module) -> None:
    """Normal weights whose variance keeps that of the gradients through a ReLU (He et al. 2015)."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
