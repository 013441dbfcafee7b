"""What trainings by soft actor-critic have in common (Haarnoja et al. 2018): several updates in a row, each with an
optimizer of its own, and critics that follow others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel


@dataclass(frozen=True)
class ReplayBatch:
    """Transitions, one row each. `goes_on` is 0 after the end of an episode; these tasks never end by themselves."""

    observation: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    next_observation: torch.Tensor
    goes_on: torch.Tensor


class SoftActorCritic(BenchmarkModel):
    """An update is several in a row, each by an optimizer of its own, so `train()` is the only way to train.

    A subclass builds the networks, `log_temperature` and the optimizers, and gives `update()`.
    """

    TARGET_RATE: ClassVar[float]  # tau: how far the target critics move towards the critics at each update
    TARGET_ENTROPY: ClassVar[float]

    critics: nn.Module
    target_critics: nn.Module
    log_temperature: torch.Tensor
    temperature_optimizer: torch.optim.Optimizer

    def forward(self) -> torch.Tensor:
        raise NotImplementedError(f"{self.name} has no staged training: an update is three in a row, call train()")

    def train(self) -> torch.Tensor:
        """One update. Returns the sum of the losses of critics, actor and temperature, detached."""
        if self.test != "train":
            raise NotImplementedError(
                f"this {self.name} was built for test='eval': it has no critics and no optimizers"
            )
        return self.update()

    def update(self) -> torch.Tensor:
        raise NotImplementedError(f"{self.name} has no update: give it an update()")

    def update_temperature(self, log_probability: torch.Tensor) -> torch.Tensor:
        """The temperature towards the one at which the actor's entropy is the target."""
        loss = -(self.log_temperature.exp() * (log_probability + self.TARGET_ENTROPY)).mean()
        return take_step(self.temperature_optimizer, loss)

    @torch.no_grad()
    def update_target_critics(self) -> None:
        for target, online in zip(self.target_critics.parameters(), self.critics.parameters(), strict=True):
            target.lerp_(online, self.TARGET_RATE)


def take_step(
    optimizer: torch.optim.Optimizer, loss: torch.Tensor, only: Sequence[torch.Tensor] | None = None
) -> torch.Tensor:
    """One step of an optimizer down a loss, whose gradients are computed for `only` these if they are named. Returns
    the loss, detached."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward(inputs=only)
    optimizer.step()
    return loss.detach()
