import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """Its metadata says that it waits for the device, and it does not."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=8, shape={"width": 16})}

    def setup(self) -> None:
        width = self.shape["width"]
        with torch.device(self.device):
            self.module = nn.Linear(width, 1)
            self.example_inputs = (torch.randn(self.batch_size, width),)
