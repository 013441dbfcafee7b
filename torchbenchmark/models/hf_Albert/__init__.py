"""hf_Albert: the masked-language model of transformers with ALBERT-base's shape (Lan et al. 2019), random weights."""

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import AlbertConfig, AlbertForMaskedLM  # noqa: E402 - it may import torchvision: guard first

# of the library's default, which is the largest ALBERT, the second version of the base one keeps the rest
BASE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
V1 = Preset(train_batch=8, eval_batch=1, shape={"train_sequence": 512, "eval_sequence": 512, "config": BASE})


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size.

    All twelve layers are one, applied again and again.
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
                "config": {
                    "vocab_size": 256,
                    "embedding_size": 32,
                    "hidden_size": 96,
                    "num_hidden_layers": 3,
                    "num_attention_heads": 2,
                    "intermediate_size": 384,
                    "max_position_embeddings": 64,
                },
            },
        ),
    }

    def build_network(self) -> AlbertForMaskedLM:
        return AlbertForMaskedLM(AlbertConfig(**self.shape["config"]))
