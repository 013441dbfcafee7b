import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """Learns from each of its tasks, by gradients of gradients, before it answers: an inference needs gradients too.
    What it reads back lies on the host all the time. Nothing is wrong with it."""

    EVAL_WITHOUT_GRAD = False
    PRESETS = {"tiny": Preset(train_batch=4, eval_batch=2, shape={"width": 16})}

    def setup(self) -> None:
        width = self.shape["width"]
        with torch.device(self.device):
            self.module = Learner(width)
            self.example_inputs = (torch.randn(self.batch_size, 5, width), torch.randn(self.batch_size, 5, 1))
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=1e-3)

    def forward(self) -> torch.Tensor:
        return (self.call_module() - self.example_inputs[1]).square().mean()

    def eval(self) -> tuple[torch.Tensor, ...]:
        return (self.call_module().detach(),)


class Learner(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, 1))

    def forward(self, tasks: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        loss = (tasks @ self.weight - answers).square().mean(dim=(1, 2)).sum()
        (gradient,) = torch.autograd.grad(loss, self.weight, create_graph=True)
        halvings = torch.tensor(1).add(2).item()
        return tasks @ (self.weight - gradient / 2**halvings)
