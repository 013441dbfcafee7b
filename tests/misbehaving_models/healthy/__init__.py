import torch

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """One linear layer that behaves."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=8, shape={"width": 32})}

    def setup(self) -> None:
        width = self.shape["width"]
        self.module = torch.nn.Linear(width, width).to(self.device)
        self.example_inputs = (torch.randn(self.batch_size, width, device=self.device),)
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-3)

    def forward(self) -> torch.Tensor:
        return self.call_module().square().mean()

    def eval(self) -> tuple[torch.Tensor, ...]:
        return (self.forward(),)
