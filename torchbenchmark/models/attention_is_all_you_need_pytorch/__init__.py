"""attention_is_all_you_need_pytorch: the Transformer (Vaswani et al. 2017) on translations as short as Multi30k's."""

import torch
from torch.nn import functional

from torchbenchmark.families.inverse_square_root import follow_inverse_square_root, inverse_square_root
from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.attention_is_all_you_need_pytorch.network import Transformer
from torchbenchmark.models.attention_is_all_you_need_pytorch.sentences import PADDING, make_sentences

PEAK = 2.0  # times the schedule of the paper
SOURCE_MEDIAN, TARGET_MEDIAN = 12, 13  # words of a German sentence of Multi30k and of its English translation
FULL = {
    "vocabulary": 9521,  # about as many words stand three times in German and English of Multi30k together
    "positions": 200,
    "width": 512,
    "inner": 2048,
    "heads": 8,
    "layers": 6,
    "warm_up": 128,
}


class Model(BenchmarkModel):
    """Adam on the summed cross-entropy of each next word; an inference scores the words of given translations."""

    PRESETS = {
        "full": Preset(train_batch=128, eval_batch=128, shape=FULL),
        "head": Preset(train_batch=256, eval_batch=32, shape=FULL),
        "tiny": Preset(
            train_batch=4,
            eval_batch=16,
            shape={
                "vocabulary": 200,
                "positions": 50,
                "width": 64,
                "inner": 128,
                "heads": 2,
                "layers": 2,
                "warm_up": 128,
            },
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.module = Transformer(
                shape["vocabulary"],
                shape["positions"],
                shape["width"],
                shape["inner"],
                shape["heads"],
                shape["layers"],
            )
            source = make_sentences(self.batch_size, SOURCE_MEDIAN, shape["vocabulary"])
            translation = make_sentences(self.batch_size, TARGET_MEDIAN, shape["vocabulary"])
        self.example_inputs = (source, translation[:, :-1].contiguous())
        if self.test == "train":
            self.next_words = translation[:, 1:].flatten()
            self.optimizer = self.build_optimizer()

    def build_optimizer(self) -> torch.optim.Optimizer:
        warm_up = self.shape["warm_up"]
        first_rate = PEAK * self.shape["width"] ** -0.5 * inverse_square_root(1, warm_up)
        optimizer = torch.optim.Adam(self.module.parameters(), lr=first_rate, betas=(0.9, 0.98), eps=1e-9)
        follow_inverse_square_root(optimizer, warm_up)
        return optimizer

    def forward(self) -> torch.Tensor:
        scores = self.call_module().flatten(0, 1)
        return functional.cross_entropy(scores, self.next_words, ignore_index=PADDING, reduction="sum")
