"""The networks of DrQ: convolutions that critics and actor share, a summary of each one's own, and what it decides."""

import torch
from torch import nn

FILTERS = 32
LAYERS = 4
BRIGHTEST = 255.0
LOG_DEVIATION_RANGE = (-10.0, 2.0)


def build_convolutions(channels: int, filters: int = FILTERS) -> nn.Sequential:
    """3x3 without padding; the first one halves the resolution."""
    layers: list[nn.Module] = [nn.Conv2d(channels, filters, kernel_size=3, stride=2), nn.ReLU()]
    for _ in range(LAYERS - 1):
        layers += [nn.Conv2d(filters, filters, kernel_size=3), nn.ReLU()]
    return nn.Sequential(*layers)


def side_after_convolutions(side: int) -> int:
    return (side - 3) // 2 + 1 - 2 * (LAYERS - 1)


def build_summary(filters: int, side: int, features: int) -> nn.Sequential:
    """From what the convolutions see in pictures of `side` to a few features between -1 and 1."""
    seen = filters * side_after_convolutions(side) ** 2
    return nn.Sequential(nn.Flatten(), nn.Linear(seen, features), nn.LayerNorm(features), nn.Tanh())


class Actor(nn.Module):
    """From observations to mean and log standard deviation of the action before squashing. The critics train the
    convolutions; no gradient of the actor's reaches them."""

    def __init__(self, convolutions: nn.Sequential, summary: nn.Sequential, hidden: int, action: int) -> None:
        super().__init__()
        self.convolutions = convolutions
        self.summary = summary
        self.policy = mlp(summary[1].out_features, hidden, 2 * action)
        self.brightest = BRIGHTEST  # attributes, for TorchScript knows no constants of a Python module
        self.lowest, self.highest = LOG_DEVIATION_RANGE

    def own_parameters(self) -> list[nn.Parameter]:
        return [*self.summary.parameters(), *self.policy.parameters()]

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen = self.convolutions(observation / self.brightest).detach()
        mean, squashed = self.policy(self.summary(seen)).chunk(2, dim=-1)
        return mean, self.lowest + 0.5 * (self.highest - self.lowest) * (squashed.tanh() + 1)


class TwinCritics(nn.Module):
    """Two estimates of the value of an action, from one summary of the observation."""

    def __init__(self, convolutions: nn.Sequential, summary: nn.Sequential, hidden: int, action: int) -> None:
        super().__init__()
        self.convolutions = convolutions
        self.summary = summary
        inputs = summary[1].out_features + action
        self.first = mlp(inputs, hidden, 1)
        self.second = mlp(inputs, hidden, 1)

    def forward(self, observation: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.summary(self.convolutions(observation / BRIGHTEST))
        both = torch.cat([features, action], dim=-1)
        return self.first(both), self.second(both)


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )
