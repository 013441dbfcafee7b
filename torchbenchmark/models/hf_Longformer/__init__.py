"""hf_Longformer: the masked-language model of transformers as Longformer (Beltagy et al. 2020), random weights."""

import torch
from torch import nn

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import LongformerConfig, LongformerForMaskedLM  # noqa: E402 - it may import torchvision: guard first
from transformers.models.longformer.modeling_longformer import LongformerBaseModelOutput  # noqa: E402

BASE = {  # the published base network, where it is not the library's default
    "vocab_size": 50265,
    "max_position_embeddings": 4098,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
V1 = Preset(train_batch=2, eval_batch=1, shape={"train_sequence": 1024, "eval_sequence": 4096, "config": BASE})


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    Each token attends to a window of its neighbours. The attention mask hides nothing; without one the library would
    look for padding among the tokens, and the host would wait for the device.
    """

    PRESETS = {
        "full": V1,
        "head": V1,
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={
                "train_sequence": 64,
                "eval_sequence": 64,
                "config": BASE
                | {
                    "vocab_size": 256,
                    "hidden_size": 64,
                    "num_hidden_layers": 2,
                    "num_attention_heads": 2,
                    "intermediate_size": 256,
                    "attention_window": 16,
                    "max_position_embeddings": 66,
                },
            },
        ),
    }

    def build_network(self) -> LongformerForMaskedLM:
        network = LongformerForMaskedLM(LongformerConfig(**self.shape["config"]))
        network.longformer.encoder = LocalEncoder(network.longformer.encoder.layer)
        return network

    def training_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return super().training_inputs(tokens) | {"attention_mask": torch.ones_like(tokens)}

    def inference_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


class LocalEncoder(nn.Module):
    """The library's layers one after the other, for sequences of whole windows in which no token has global attention;
    the library's encoder looks for such tokens in every pass."""

    def __init__(self, layers: nn.ModuleList) -> None:
        super().__init__()
        self.layer = layers

    def forward(
        self, hidden_states: torch.Tensor, attention_mask: torch.Tensor, **_: object
    ) -> LongformerBaseModelOutput:
        hidden = attention_mask < 0
        for layer in self.layer:
            hidden_states = layer(
                hidden_states, attention_mask=attention_mask, is_index_masked=hidden, is_global_attn=False
            )[0]
        return LongformerBaseModelOutput(last_hidden_state=hidden_states)
