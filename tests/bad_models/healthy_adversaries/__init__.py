import copy

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset

AVERAGING = 0.1


class Model(BenchmarkModel):
    """A generator against a discriminator, with drop-out, noise, and a running average of the generator: a training
    with all that a contract could take for a mistake. Nothing is wrong with it."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=4, shape={"width": 16})}

    def setup(self) -> None:
        width = self.shape["width"]
        with torch.device(self.device):
            self.module = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width))
            self.example_inputs = (torch.randn(self.batch_size, width),)
            self.real = torch.randn(self.batch_size, width)
            self.scale = torch.tensor(0.1)
            if self.test == "train":
                self.discriminator = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        if self.test == "train":
            self.average = copy.deepcopy(self.module).requires_grad_(False)
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=1e-3)
            self.discriminator_optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=1e-3)

    def train(self) -> torch.Tensor:
        if self.test != "train":
            raise NotImplementedError(f"{self.name} was built for test={self.test!r}")
        generator_loss, made = self.generator_step()
        discriminator_loss = self.discriminator_step(made)
        with torch.no_grad():
            for average, now in zip(self.average.parameters(), self.module.parameters(), strict=True):
                average.lerp_(now, AVERAGING)
        return generator_loss + discriminator_loss

    def generator_step(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradients come to the discriminator too, and are zeroed before its own step."""
        self.optimizer.zero_grad()
        made = self.call_module()
        made = made + self.scale * torch.randn_like(made)
        loss = functional.softplus(-self.discriminator(made)).mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach(), made.detach()

    def discriminator_step(self, made: torch.Tensor) -> torch.Tensor:
        """Two backward passes are added up for one step."""
        self.discriminator_optimizer.zero_grad(set_to_none=False)
        losses = (
            functional.softplus(self.discriminator(made)).mean(),
            functional.softplus(-self.discriminator(self.real)).mean(),
        )
        for loss in losses:
            loss.backward()
        self.discriminator_optimizer.step()
        return sum(losses).detach()
