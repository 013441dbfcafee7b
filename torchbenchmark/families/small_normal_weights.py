"""How the weights of adversarial networks begin: small and normal (Radford et al., DCGAN, 2016)."""

from torch import nn

DEVIATION = 0.02


def initialize_small_and_normal(network: nn.Module) -> None:
    """Convolutions around 0 without biases, batch normalizations around 1."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(layer.weight, std=DEVIATION)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight, mean=1.0, std=DEVIATION)
