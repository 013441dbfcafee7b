"""hf_Bart: the encoder and decoder of transformers with BART-base's shape (Lewis et al. 2019), random weights."""

import torch

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import BartConfig, BartForConditionalGeneration  # noqa: E402 - it may import torchvision: guard first

BASE = {  # the library's default is BART-large, and without dropout inside of its layers
    "d_model": 768,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 12,
    "decoder_attention_heads": 12,
    "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
    "attention_dropout": 0.1,
    "activation_dropout": 0.1,
}


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position, the decoder reading the labels shifted by one; an
    inference of one sequence at full size, which encoder and decoder both read.

    The decoder is given the mask by which it looks back alone: without one, the library makes a mask that hides
    nothing and reads it back, to find out that it hides nothing, and the host would wait for the device. In fp16 it
    waits all the same: after each layer of the encoder the library looks whether a value has overflown.
    """

    PRESETS = {
        "full": Preset(
            train_batch=4, eval_batch=1, shape={"train_sequence": 512, "eval_sequence": 512, "config": BASE}
        ),
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={
                "train_sequence": 32,
                "eval_sequence": 64,
                "config": BASE
                | {
                    "vocab_size": 256,
                    "d_model": 64,
                    "encoder_layers": 1,
                    "decoder_layers": 1,
                    "encoder_attention_heads": 2,
                    "decoder_attention_heads": 2,
                    "encoder_ffn_dim": 256,
                    "decoder_ffn_dim": 256,
                    "max_position_embeddings": 64,
                },
            },
        ),
    }

    def build_network(self) -> BartForConditionalGeneration:
        return BartForConditionalGeneration(BartConfig(**self.shape["config"]))

    def training_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return super().training_inputs(tokens) | {"decoder_attention_mask": looking_back(tokens.shape[1])}

    def inference_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        mask = looking_back(tokens.shape[1])
        return {"input_ids": tokens, "decoder_input_ids": tokens, "decoder_attention_mask": mask}


def looking_back(length: int) -> torch.Tensor:
    """The mask of causal attention, for all sequences and heads: True where a position may look."""
    return torch.ones(1, 1, length, length, dtype=torch.bool).tril()
