import torch
import worksteps

from torchbenchmark.model import BenchmarkModel, Preset


class Works(torch.nn.Linear):
    """A layer that takes the steps of a package."""

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        worksteps.work()
        return super().forward(given)


class Model(BenchmarkModel):
    """One such layer."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=8, shape={"width": 32})}

    def setup(self) -> None:
        width = self.shape["width"]
        self.module = Works(width, width).to(self.device)
        self.example_inputs = (torch.randn(self.batch_size, width, device=self.device),)
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-3)

    def forward(self) -> torch.Tensor:
        return self.call_module().square().mean()
