"""hf_T5: the encoder and decoder of transformers with T5-small's shape (Raffel et al. 2019), random weights."""

import torch

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import T5Config, T5ForConditionalGeneration  # noqa: E402 - it may import torchvision: guard first

DECODER_START = 0  # the padding token, as in the published configuration; the library's default has none


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position, the decoder reading the labels shifted by one; an
    inference of one sequence at full size, which encoder and decoder both read."""

    PRESETS = {
        "full": Preset(
            train_batch=2, eval_batch=1, shape={"train_sequence": 1024, "eval_sequence": 2048, "config": {}}
        ),
        "head": Preset(
            train_batch=8, eval_batch=1, shape={"train_sequence": 1024, "eval_sequence": 2048, "config": {}}
        ),
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={
                "train_sequence": 32,
                "eval_sequence": 64,
                "config": {
                    "vocab_size": 256,
                    "d_model": 64,
                    "d_kv": 32,
                    "d_ff": 256,
                    "num_layers": 1,
                    "num_heads": 2,
                },
            },
        ),
    }

    def build_network(self) -> T5ForConditionalGeneration:
        return T5ForConditionalGeneration(T5Config(decoder_start_token_id=DECODER_START, **self.shape["config"]))

    def inference_inputs(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"input_ids": tokens, "decoder_input_ids": tokens}
