"""What Transformers are made of (Vaswani et al. 2017): attention, feed-forward networks, their layers, and positions.

Attention is written out in products and a softmax, as in the networks of V1, which were older than torch's fused one.
Masks say where to look: `allowed` is boolean, [batch, 1 or queries, keys].
"""

import math

import torch
from torch import nn


class Attention(nn.Module):
    """Several heads, each with its own projections of queries, keys and values, and a projection of all of them."""

    def __init__(self, width: int, heads: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias)
        self.value = nn.Linear(width, width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, target: torch.Tensor, source: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        """What each position of `target` [batch, queries, width] finds in `source` [batch, keys, width]."""
        query = self.split(self.query(target) * self.scale)
        key = self.split(self.key(source))
        value = self.split(self.value(source))
        scores = torch.matmul(query, key.transpose(2, 3)).masked_fill(~allowed.unsqueeze(1), float("-inf"))
        found = torch.matmul(self.dropout(scores.softmax(dim=3)), value)
        return self.output(found.transpose(1, 2).flatten(2))

    def split(self, features: torch.Tensor) -> torch.Tensor:
        """[batch, positions, width] as [batch, heads, positions, width of a head]."""
        return features.unflatten(2, (self.heads, -1)).transpose(1, 2)


def feed_forward(width: int, inner: int, activation: nn.Module, dropout: float) -> nn.Sequential:
    """Two linear layers, the same ones at each position."""
    return nn.Sequential(nn.Linear(width, inner), activation, nn.Dropout(dropout), nn.Linear(inner, width))


class PreNormLayer(nn.Module):
    """Self-attention and feed-forward network, each of a normalized input and added to it."""

    def __init__(self, width: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout, bias=True)
        self.attention_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, inner, nn.GELU(approximate="tanh"), dropout)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        normalized = self.attention_norm(features)
        features = features + self.dropout(self.attention(normalized, normalized, allowed))
        return features + self.dropout(self.feed_forward(self.feed_forward_norm(features)))


class PostNormLayer(nn.Module):
    """Self-attention and feed-forward network, each added to its input and normalized after that, as in the paper."""

    def __init__(self, width: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout, bias=False)
        self.attention_norm = nn.LayerNorm(width, eps=1e-6)
        self.feed_forward = feed_forward(width, inner, nn.ReLU(), dropout)
        self.feed_forward_norm = nn.LayerNorm(width, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        features = self.attention_norm(features + self.dropout(self.attention(features, features, allowed)))
        return self.feed_forward_norm(features + self.dropout(self.feed_forward(features)))


class PostNormDecoderLayer(nn.Module):
    """Between self-attention and feed-forward network one more attention, to what the encoder has made."""

    def __init__(self, width: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout, bias=False)
        self.attention_norm = nn.LayerNorm(width, eps=1e-6)
        self.encoder_attention = Attention(width, heads, dropout, bias=False)
        self.encoder_attention_norm = nn.LayerNorm(width, eps=1e-6)
        self.feed_forward = feed_forward(width, inner, nn.ReLU(), dropout)
        self.feed_forward_norm = nn.LayerNorm(width, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, features: torch.Tensor, allowed: torch.Tensor, encoded: torch.Tensor, encoded_allowed: torch.Tensor
    ) -> torch.Tensor:
        features = self.attention_norm(features + self.dropout(self.attention(features, features, allowed)))
        found = self.encoder_attention(features, encoded, encoded_allowed)
        features = self.encoder_attention_norm(features + self.dropout(found))
        return self.feed_forward_norm(features + self.dropout(self.feed_forward(features)))


def sinusoids(positions: int, width: int) -> torch.Tensor:
    """[positions, width]: sines at even places and cosines at odd ones, from a period of 2 pi to nearly 10,000 times
    that."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    angles = torch.arange(positions).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
