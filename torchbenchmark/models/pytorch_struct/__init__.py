"""pytorch_struct: a grammar is learnt from sentences alone, by a neural PCFG (Kim et al. 2019) and the inside
algorithm."""

from typing import Any

import torch
from torch import nn

from torchbenchmark.families.sentence_lengths import sentence_lengths
from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.pytorch_struct.grammar import NeuralGrammar

LEARNING_RATE = 1e-3
BETAS = (0.75, 0.999)
LARGEST_GRADIENT = 3.0  # the norm of all gradients together is scaled down to it
LENGTH_SPREAD = 0.5
FULL = {
    "vocabulary": 5000,
    "terminals": 30,
    "nonterminals": 30,
    "width": 256,
    "median_length": 14,
    "lengths": (6, 29),
}


class Model(BenchmarkModel):
    """Adam on the likelihood of sentences of random words; an inference gives the log-likelihood of each."""

    PRESETS = {
        "full": Preset(train_batch=100, eval_batch=100, shape=FULL),
        "head": Preset(train_batch=200, eval_batch=200, shape=FULL),
        "tiny": Preset(
            train_batch=4,
            eval_batch=32,
            shape={
                "vocabulary": 100,
                "terminals": 6,
                "nonterminals": 4,
                "width": 32,
                "median_length": 5,
                "lengths": (3, 8),
            },
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        shortest, longest = shape["lengths"]
        lengths = sentence_lengths(self.batch_size, shape["median_length"], LENGTH_SPREAD, shortest, longest)
        with torch.device(self.device):
            self.module = NeuralGrammar(shape["vocabulary"], shape["terminals"], shape["nonterminals"], shape["width"])
            words = torch.randint(shape["vocabulary"], (self.batch_size, max(lengths)))
            self.example_inputs = (words, torch.tensor(lengths))
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE, betas=BETAS)
            self.optimizer.register_step_pre_hook(clip_gradients)

    def forward(self) -> torch.Tensor:
        return -self.call_module().mean()


def clip_gradients(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    nn.utils.clip_grad_norm_(parameters, LARGEST_GRADIENT)
