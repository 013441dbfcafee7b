"""A model of two layers that every backend and precision can run in milliseconds."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset


@dataclass(frozen=True)
class Batch:
    targets: torch.Tensor
    weights: list[torch.Tensor]


class Model(BenchmarkModel):
    PRESETS = {"full": Preset(train_batch=4, eval_batch=2, shape={"width": 8})}

    def setup(self) -> None:
        width = self.shape["width"]
        with torch.device(self.device):
            self.module = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 1))
            self.example_inputs = (torch.randn(self.batch_size, width),)
            self.batch = Batch(torch.zeros(self.batch_size, 1), [torch.ones(self.batch_size, 1)])
            self.positions = torch.arange(self.batch_size)
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=0.01)

    def forward(self) -> torch.Tensor:
        return functional.mse_loss(self.call_module() * self.batch.weights[0], self.batch.targets)


class ByHand(Model):
    """The same work with a training of its own."""

    def train(self) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward()
        loss.backward()
        self.optimizer.step()
        return loss.detach()
