"""What convolutional networks are made of: convolutions with batch normalization, and how their weights begin."""

from torch import nn


def normalized_convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    """A convolution that keeps the resolution up to its stride, without the bias that the normalization would undo."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


def initialize_convolutions(network: nn.Module) -> None:
    """Normal weights whose variance keeps that of the gradients through a ReLU (He et al. 2015), and no bias."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def initialize_linear_layers(network: nn.Module, deviation: float) -> None:
    """Normal weights of a fixed standard deviation, and no bias."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=deviation)
            nn.init.zeros_(layer.bias)


def set_normalizations(network: nn.Module, momentum: float, epsilon: float) -> None:
    """How far a batch moves the running statistics, and what is added to the variance, in all batch normalizations."""
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum, layer.eps = momentum, epsilon
