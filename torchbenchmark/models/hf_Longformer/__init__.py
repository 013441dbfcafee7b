"""hf_Longformer: the masked-language model of transformers as Longformer (Beltagy et al. 2020), random weights."""

import torch
from torch import nn

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import LongformerConfig, LongformerForMaskedLM  # noqa: E402 - it may import torchvision: guard first
from transformers.models.longformer.modeling_longformer import LongformerBaseModelOutputWithPooling  # noqa: E402

BASE = {  # the published base network, where it is not the library's default
    "vocab_size": 50265,
    "max_position_embeddings": 4098,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
V1 = Preset(train_batch=2, eval_batch=1, shape={"train_sequence": 1024, "eval_sequence": 4096, "config": BASE})


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    Each token attends to a window of its neighbours.
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
        network.longformer = LocalLongformer(network.longformer.embeddings, network.longformer.encoder)
        return network


class LocalLongformer(nn.Module):
    """The library's embeddings and layers, for sequences of whole windows in which no token is padding and none has
    global attention.

    The library's own way between them looks for padding among the tokens and for global attention in the mask, and
    copies a number to the device for the mask: the host would wait for the device in every pass.
    """

    def __init__(self, embeddings: nn.Module, encoder: nn.Module) -> None:
        super().__init__()
        self.embeddings, self.encoder = embeddings, encoder

    def forward(self, input_ids: torch.Tensor, **_: object) -> LongformerBaseModelOutputWithPooling:
        states = self.embeddings(input_ids=input_ids)
        local = states.new_zeros(
            input_ids.shape
        )  # the library's sign for local attention; a negative one hides a token
        hidden = local < 0
        for layer in self.encoder.layer:
            states = layer(states, attention_mask=local, is_index_masked=hidden, is_global_attn=False)[0]
        return LongformerBaseModelOutputWithPooling(last_hidden_state=states)
