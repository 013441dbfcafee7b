"""The work that V1's language models of transformers have in common: random tokens and labels, the library's loss."""

from typing import Any

import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel

LEARNING_RATE = 1e-3


class LanguageModel(BenchmarkModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    A subclass gives the network; its presets' shapes say `train_sequence` and `eval_sequence`, the lengths in tokens,
    and `config`, what differs from the library's default configuration. Everything else is the library's default,
    dropout and the cache of keys and values with it. No attention mask is given where none need be: every position is a
    token, and the library would look at a mask's values.
    """

    def setup(self) -> None:
        with torch.device(self.device):
            self.module = self.build_network()
            tokens = self.random_tokens()
            self.example_inputs = (
                self.training_inputs(tokens) if self.test == "train" else self.inference_inputs(tokens)
            )
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def build_network(self) -> nn.Module:
        raise NotImplementedError(f"{self.name} has no network: give it a build_network()")

    def training_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"input_ids": tokens, "labels": self.random_tokens()}

    def inference_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"input_ids": tokens}

    def random_tokens(self) -> torch.Tensor:
        return torch.randint(self.vocabulary(), (self.batch_size, self.shape[f"{self.test}_sequence"]))

    def vocabulary(self) -> int:
        config: Any = self.module.config
        return config.vocab_size

    def forward(self) -> torch.Tensor:
        output: Any = self.call_module()
        return output.loss
