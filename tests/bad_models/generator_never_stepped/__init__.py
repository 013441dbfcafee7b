import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """Its generator has an optimizer that never steps."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=8, shape={"width": 16})}

    def setup(self) -> None:
        width = self.shape["width"]
        with torch.device(self.device):
            self.module = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
            self.example_inputs = (torch.randn(self.batch_size, width),)
            self.target = torch.randn(self.batch_size, 1)
            self.generator = nn.Linear(width, width)
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=0.05)
            self.generator_optimizer = torch.optim.SGD(self.generator.parameters(), lr=0.05)

    def forward(self) -> torch.Tensor:
        return (self.call_module() - self.target).square().mean()

    def call_module(self) -> torch.Tensor:
        return self.module(self.generator(*self.example_inputs))
