"""hf_Bert: the masked-language model of transformers with BERT-base's shape (Devlin et al. 2018), random weights."""

from typing import Any

import torch

from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import BertConfig, BertForMaskedLM  # noqa: E402 - transformers may import torchvision: guard first

LEARNING_RATE = 1e-3


class Model(BenchmarkModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    No attention mask is given: every position is a token, and the library would look at a mask's values.
    """

    PRESETS = {
        "full": Preset(train_batch=4, eval_batch=1, shape={"sequence": 512, "config": {}}),
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={
                "sequence": 64,
                "config": {
                    "vocab_size": 256,
                    "hidden_size": 96,
                    "num_hidden_layers": 2,
                    "num_attention_heads": 2,
                    "intermediate_size": 384,
                    "max_position_embeddings": 64,
                },
            },
        ),
    }

    def setup(self) -> None:
        config = BertConfig(**self.shape["config"])
        with torch.device(self.device):
            self.module = BertForMaskedLM(config)
            self.example_inputs = {"input_ids": self.random_tokens(config.vocab_size)}
            if self.test == "train":
                self.example_inputs["labels"] = self.random_tokens(config.vocab_size)
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def random_tokens(self, vocabulary: int) -> torch.Tensor:
        return torch.randint(vocabulary, (self.batch_size, self.shape["sequence"]))

    def forward(self) -> torch.Tensor:
        output: Any = self.call_module()
        return output.loss
