"""hf_DistilBert: the masked-language model of transformers in DistilBERT's shape (Sanh et al. 2019), random weights."""

from torchbenchmark.families.language_model import LanguageModel
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from transformers import DistilBertConfig, DistilBertForMaskedLM  # noqa: E402 - it may import torchvision: guard first

V1 = Preset(train_batch=8, eval_batch=1, shape={"train_sequence": 512, "eval_sequence": 512, "config": {}})


class Model(LanguageModel):
    """Adam on random tokens with random labels at every position; an inference of one sequence at full size."""

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
                    "dim": 96,
                    "n_layers": 2,
                    "n_heads": 2,
                    "hidden_dim": 384,
                    "max_position_embeddings": 64,
                },
            },
        ),
    }

    def build_network(self) -> DistilBertForMaskedLM:
        return DistilBertForMaskedLM(DistilBertConfig(**self.shape["config"]))
