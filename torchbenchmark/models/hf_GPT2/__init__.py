"""hf_GPT2: the causal language model of transformers with GPT-2's shape (Radford et al. 2019), random weights."""

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402 - transformers may import torchvision: guard first

V1 = Preset(train_batch=4, eval_batch=1, shape={"train_sequence": 512, "eval_sequence": 1024, "config": {}})


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    The cache of keys and values stays on, as V1 had it: without one the library looks at the values of the positions,
    to find sequences that are packed together, and the host would wait for the device.
    """

    PRESETS = {
        "full": V1,
        "head": V1,
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={
                "train_sequence": 32,
                "eval_sequence": 64,
                "config": {
                    "vocab_size": 256,
                    "bos_token_id": 255,
                    "eos_token_id": 255,
                    "n_positions": 64,
                    "n_embd": 64,
                    "n_layer": 2,
                    "n_head": 2,
                },
            },
        ),
    }

    def build_network(self) -> GPT2LMHeadModel:
        network = GPT2LMHeadModel(GPT2Config(**self.shape["config"]))
        network.loss_type = "ForCausalLM"  # the library's choice too, but only after a warning
        return network
