"""hf_BigBird: the masked-language model of transformers with BigBird's shape (Zaheer et al. 2020), random weights."""

import torch

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.models.hf_BigBird.block_sparse_attention import BlockSparseAttention, draw_random_blocks
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import BigBirdConfig, BigBirdForMaskedLM  # noqa: E402 - it may import torchvision: guard first

V1 = Preset(train_batch=2, eval_batch=1, shape={"train_sequence": 1024, "eval_sequence": 4096, "config": {}})


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    The library's attention draws its random blocks with numpy's global generator in every pass, and copies them to the
    device; an own one takes its place in each layer. The attention mask hides nothing; without one the library would
    look for padding among the tokens, and the host would wait for the device.
    """

    PRESETS = {
        "full": V1,
        "head": V1,
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={
                "train_sequence": 96,
                "eval_sequence": 96,
                "config": {
                    "vocab_size": 256,
                    "hidden_size": 64,
                    "num_hidden_layers": 2,
                    "num_attention_heads": 2,
                    "intermediate_size": 256,
                    "block_size": 8,
                    "num_random_blocks": 2,
                    "max_position_embeddings": 96,
                },
            },
        ),
    }

    def build_network(self) -> BigBirdForMaskedLM:
        network = BigBirdForMaskedLM(BigBirdConfig(**self.shape["config"]))
        config = network.config
        blocks = self.shape[f"{self.test}_sequence"] // config.block_size
        for position, layer in enumerate(network.bert.encoder.layer):
            theirs = layer.attention.self
            drawn = draw_random_blocks(config.num_attention_heads, blocks, config.num_random_blocks, seed=position)
            layer.attention.self = BlockSparseAttention(theirs.query, theirs.key, theirs.value, drawn)
        return network

    def training_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return super().training_inputs(tokens) | {"attention_mask": torch.ones(tokens.shape)}

    def inference_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"input_ids": tokens, "attention_mask": torch.ones(tokens.shape)}
