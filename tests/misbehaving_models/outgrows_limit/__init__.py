import time

import torch

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """One linear layer that allocates and touches memory without end."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=8, shape={"width": 32})}

    def setup(self) -> None:
        width = self.shape["width"]
        self.module = torch.nn.Linear(width, width).to(self.device)
        self.example_inputs = (torch.randn(self.batch_size, width, device=self.device),)
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-3)

    def forward(self) -> torch.Tensor:
        hoard = []
        while True:
            hoard.append(torch.ones(4 * 2**20))  # 16 MiB
            time.sleep(0.01)
