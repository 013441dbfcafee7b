import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset


class Model(BenchmarkModel):
    """Finds rows, and how many it finds depends on their values. Its metadata says so, and nothing is wrong with it."""

    PRESETS = {"tiny": Preset(train_batch=8, eval_batch=8, shape={"width": 16})}

    def setup(self) -> None:
        width = self.shape["width"]
        with torch.device(self.device):
            self.module = nn.Linear(width, 1)
            self.example_inputs = (torch.randn(self.batch_size, width),)

    def eval(self) -> tuple[torch.Tensor, ...]:
        score = self.call_module()
        return (score[score > 0], score)
