"""The work that V1's adversarial models have in common: both a generator and a discriminator step in an iteration."""

from collections.abc import Iterable

import torch

from torchbenchmark.model import BenchmarkModel


class TwoPlayerGame(BenchmarkModel):
    """Training is steps of two optimizers that depend on each other, so there is no staged trio: `train()` is the only
    way to train.

    A subclass gives `play()`, one iteration, and sets `discriminator_optimizer` beside `optimizer`, which is the
    generator's. `get_module`, `set_module`, `get_optimizer` and `set_optimizer` speak of the generator; the
    discriminator stays as it is. A test="eval" instance has the generator alone.
    """

    discriminator_optimizer: torch.optim.Optimizer

    def play(self) -> torch.Tensor:
        """One iteration, in which both sides step at least once. Returns the sum of their losses, detached."""
        raise NotImplementedError(f"{self.name} has no training: give it a play()")

    def forward(self) -> torch.Tensor:
        raise NotImplementedError(f"{self.name} has no staged training: both sides step in an iteration, call train()")

    def train(self) -> torch.Tensor:
        if self.test != "train":
            raise NotImplementedError(f"this {self.name} was built for test='eval': it has no discriminator")
        return self.play()

    def step_generator(self, loss: torch.Tensor) -> torch.Tensor:
        """Step the generator. The loss's gradients flow through the discriminator, but its own are neither kept nor
        computed."""
        assert self.optimizer is not None
        return _descend(loss, self.optimizer, self.module.parameters())

    def step_discriminator(self, loss: torch.Tensor) -> torch.Tensor:
        optimizer = self.discriminator_optimizer
        return _descend(loss, optimizer, (part for group in optimizer.param_groups for part in group["params"]))


def _descend(
    loss: torch.Tensor, optimizer: torch.optim.Optimizer, parameters: Iterable[torch.nn.Parameter]
) -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss.backward(inputs=list(parameters))
    optimizer.step()
    return loss.detach()
