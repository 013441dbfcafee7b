"""BERT_pytorch: pre-training of BERT (Devlin et al. 2018) in plain torch, with sinusoidal positions."""

import torch
from torch.nn import functional

from torchbenchmark.families.inverse_square_root import follow_inverse_square_root, inverse_square_root
from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.BERT_pytorch.network import BertPretraining
from torchbenchmark.models.BERT_pytorch.sentence_pairs import NOT_PREDICTED, SentencePairs, make_sentence_pairs

FULL = {
    "vocabulary": 20_005,  # 20,000 words and five special tokens
    "tokens": 128,
    "width": 768,
    "inner": 3072,
    "heads": 12,
    "layers": 12,
    "warm_up": 10_000,
}


class Model(BenchmarkModel):
    """Adam on masked words and next sentences; an inference gives the log-probabilities of both."""

    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=64, shape=FULL),
        "head": Preset(train_batch=16, eval_batch=16, shape=FULL),
        "tiny": Preset(
            train_batch=4,
            eval_batch=16,
            shape={
                "vocabulary": 205,
                "tokens": 32,
                "width": 64,
                "inner": 256,
                "heads": 2,
                "layers": 2,
                "warm_up": 500,
            },
        ),
    }

    pairs: SentencePairs

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.module = BertPretraining(
                shape["vocabulary"], shape["tokens"], shape["width"], shape["inner"], shape["heads"], shape["layers"]
            )
            pairs = make_sentence_pairs(self.batch_size, shape["tokens"], shape["vocabulary"])
        self.example_inputs = (pairs.tokens, pairs.segments)
        if self.test == "train":
            self.pairs = pairs
            self.optimizer = self.build_optimizer()

    def build_optimizer(self) -> torch.optim.Optimizer:
        warm_up = self.shape["warm_up"]
        first_rate = self.shape["width"] ** -0.5 * inverse_square_root(1, warm_up)
        optimizer = torch.optim.Adam(self.module.parameters(), lr=first_rate, weight_decay=0.01)
        follow_inverse_square_root(optimizer, warm_up)
        return optimizer

    def forward(self) -> torch.Tensor:
        next_sentence, words = self.call_module()
        next_sentence_loss = functional.nll_loss(next_sentence, self.pairs.is_next)
        words_loss = functional.nll_loss(words.flatten(0, 1), self.pairs.labels.flatten(), ignore_index=NOT_PREDICTED)
        return next_sentence_loss + words_loss
