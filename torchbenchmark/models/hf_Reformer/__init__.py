"""hf_Reformer: a masked-language model with Reformer's shape (Kitaev et al. 2020), in plain torch, random weights."""

import torch
from torch.nn import functional

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.models.hf_Reformer.network import Reformer, Sizes


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    The sizes are the defaults of transformers, as V1 had them.
    """

    PRESETS = {
        "full": Preset(
            train_batch=8,
            eval_batch=1,
            shape={
                "train_sequence": 4096,
                "eval_sequence": 4096,
                "sizes": Sizes(
                    vocabulary=320,
                    width=256,
                    heads=12,
                    head_width=64,
                    inner=512,
                    layers=6,
                    chunk=64,
                    buckets=128,
                    axes=(64, 64),
                    axis_widths=(64, 192),
                ),
            },
        ),
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={
                "train_sequence": 128,
                "eval_sequence": 128,
                "sizes": Sizes(
                    vocabulary=64,
                    width=32,
                    heads=2,
                    head_width=16,
                    inner=64,
                    layers=4,
                    chunk=16,
                    buckets=16,
                    axes=(8, 16),
                    axis_widths=(8, 24),
                ),
            },
        ),
    }

    def build_network(self) -> Reformer:
        return Reformer(self.shape["sizes"])

    def vocabulary(self) -> int:
        return self.shape["sizes"].vocabulary

    def training_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        self.labels = self.random_tokens()
        return {"input_ids": tokens}

    def forward(self) -> torch.Tensor:
        scores = self.call_module()
        return functional.cross_entropy(scores.flatten(0, 1), self.labels.flatten())
