import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """The default of an argument keeps every loss."""

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
        loss = (self.call_module() - self.target).square().mean()
        keep(loss.detach())
        return loss


def keep(loss: torch.Tensor, kept: list[torch.Tensor] = []) -> None:  # noqa: B006 - that is what is wrong
    kept.append(loss)
