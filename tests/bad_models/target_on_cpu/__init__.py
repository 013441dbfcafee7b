import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """What it learns lies on the CPU."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=8, shape={"width": 16})}

    def setup(self) -> None:
        width = self.shape["width"]
        with torch.device(self.device):
            self.module = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
            self.example_inputs = (torch.randn(self.batch_size, width),)
        self.target = torch.randn(self.batch_size, 1)
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=0.05)

    def forward(self) -> torch.Tensor:
        return (self.call_module() - self.target).square().mean()
