"""BERT with sinusoidal positions, normalization before each sublayer, and its two heads."""

import torch
from torch import nn

from torchbenchmark.families.transformer import PreNormLayer, sinusoids
from torchbenchmark.models.BERT_pytorch.sentence_pairs import PADDING, SEGMENTS

DROPOUT = 0.1


class BertPretraining(nn.Module):
    """From tokens and segments to the log-probabilities of "is the next sentence" and of the word at each place."""

    def __init__(self, vocabulary: int, tokens: int, width: int, inner: int, heads: int, layers: int) -> None:
        super().__init__()
        self.padding = PADDING
        self.word_embedding = nn.Embedding(vocabulary, width, padding_idx=PADDING)
        self.segment_embedding = nn.Embedding(SEGMENTS, width, padding_idx=PADDING)
        self.register_buffer("positions", sinusoids(tokens, width), persistent=False)
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(PreNormLayer(width, inner, heads, DROPOUT) for _ in range(layers))
        self.next_sentence = nn.Linear(width, 2)
        self.words = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """`tokens` and `segments` are [batch, tokens]; log-probabilities [batch, 2] and [batch, tokens, vocabulary]."""
        allowed = (tokens != self.padding).unsqueeze(1)
        features = self.word_embedding(tokens) + self.positions + self.segment_embedding(segments)
        features = self.dropout(features)
        for layer in self.layers:
            features = layer(features, allowed)
        next_sentence = self.next_sentence(features[:, 0]).log_softmax(dim=1)
        return next_sentence, self.words(features).log_softmax(dim=2)
