"""The Transformer for translation (Vaswani et al. 2017): encoder, decoder, and the scores of the next word."""

import torch
from torch import nn

from torchbenchmark.families.transformer import PostNormDecoderLayer, PostNormLayer, sinusoids
from torchbenchmark.models.attention_is_all_you_need_pytorch.sentences import PADDING

DROPOUT = 0.1


class Embedding(nn.Module):
    """Words and their positions, with dropout, normalized: what the first layer of encoder or decoder reads."""

    def __init__(self, vocabulary: int, positions: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=PADDING)
        self.register_buffer("positions", sinusoids(positions, width), persistent=False)
        self.dropout = nn.Dropout(DROPOUT)
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dropout(self.words(tokens) + self.positions[: tokens.shape[1]]))


class Transformer(nn.Module):
    """Encoder and decoder of the same number of layers, each with an embedding of its own, and an output matrix.

    The three matrices of words are not tied, as in V1, whose two options for that were off.
    """

    def __init__(self, vocabulary: int, positions: int, width: int, inner: int, heads: int, layers: int) -> None:
        super().__init__()
        self.padding = PADDING
        self.source_embedding = Embedding(vocabulary, positions, width)
        self.encoder = nn.ModuleList(PostNormLayer(width, inner, heads, DROPOUT) for _ in range(layers))
        self.target_embedding = Embedding(vocabulary, positions, width)
        self.decoder = nn.ModuleList(PostNormDecoderLayer(width, inner, heads, DROPOUT) for _ in range(layers))
        self.words = nn.Linear(width, vocabulary, bias=False)
        # made once: which positions a position of the target may look at
        self.register_buffer("earlier", torch.ones(positions, positions).tril() > 0, persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Scores [batch, words of target, vocabulary] of the word after each of `target`, given the whole `source`."""
        source_allowed = (source != self.padding).unsqueeze(1)
        encoded = self.source_embedding(source)
        for layer in self.encoder:
            encoded = layer(encoded, source_allowed)
        length = target.shape[1]
        target_allowed = (target != self.padding).unsqueeze(1) & self.earlier[:length, :length]
        decoded = self.target_embedding(target)
        for layer in self.decoder:
            decoded = layer(decoded, target_allowed, encoded, source_allowed)
        return self.words(decoded)
