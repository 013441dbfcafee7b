"""fastNLP: a text classifier on the mean of the words' embeddings (Joulin et al. 2016), at the size of AG News."""

import itertools

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.sentence_lengths import sentence_lengths
from torchbenchmark.model import BenchmarkModel, Preset

LEARNING_RATE = 4.0
DROPOUT = 0.1
CLASSES = 4
MEDIAN_WORDS, SPREAD = 42, 0.28  # of the texts of AG News
SHORTEST, LONGEST = 10, 200


class Model(BenchmarkModel):
    """SGD and cross-entropy on random words with random labels, all rows of the embedding in each step.

    `full` multiplies next to nothing: it measures the fetching of rows and how a large gradient is made and applied.
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=32, shape={"vocabulary": 95_812, "width": 64}),
        "tiny": Preset(train_batch=512, eval_batch=4096, shape={"vocabulary": 5000, "width": 64}),
    }

    def setup(self) -> None:
        vocabulary = self.shape["vocabulary"]
        lengths = sentence_lengths(self.batch_size, MEDIAN_WORDS, SPREAD, SHORTEST, LONGEST)
        with torch.device(self.device):
            self.module = TextClassifier(vocabulary, self.shape["width"], CLASSES)
            starts = torch.tensor([0, *itertools.accumulate(lengths[:-1])])
            self.example_inputs = (starts, torch.randint(vocabulary, (sum(lengths),)))
            if self.test == "train":
                self.labels = torch.randint(CLASSES, (self.batch_size,))
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return functional.cross_entropy(self.call_module(), self.labels)


class TextClassifier(nn.Module):
    """Scores of the classes by the mean embedding of a text's words."""

    def __init__(self, vocabulary: int, width: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocabulary, width)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(width, classes)

    def forward(self, starts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Text i has the words from `starts[i]` up to the start of the next one."""
        return self.classifier(self.dropout(self.embedding(words, starts)))
