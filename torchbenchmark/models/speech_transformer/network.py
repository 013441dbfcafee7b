"""A transformer from stacked frames of a spectrum to characters (Dong et al. 2018; Vaswani et al. 2017).

Normalization follows each sublayer, as in the papers; the embedding of the characters is also the output's projection.
Masks are true where nothing may be seen.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn

DROPOUT = 0.1
LONGEST_PERIOD = 10_000.0  # of the positions' sines


@dataclass(frozen=True)
class Sizes:
    features: int
    vocabulary: int
    width: int
    heads: int
    inner: int
    encoder_layers: int
    decoder_layers: int
    positions: int  # the longest sequence, of frames or characters


class SpeechTransformer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.encoder = Encoder(sizes)
        self.decoder = Decoder(sizes)

    def forward(self, features: torch.Tensor, frames: torch.Tensor, characters: torch.Tensor) -> torch.Tensor:
        """Spectra [batch, time, features], how many frames each has [batch], and what was said so far [batch, length],
        to the scores of the next character [batch, length, vocabulary]."""
        padding = padding_mask(frames, features.size(1))
        return self.decoder(characters, self.encoder(features, padding), padding)


def padding_mask(frames: torch.Tensor, time: int) -> torch.Tensor:
    """[batch, 1, 1, time]."""
    return (torch.arange(time, device=frames.device) >= frames[:, None])[:, None, None]


class Encoder(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.projection = nn.Linear(sizes.features, sizes.width)
        self.norm = nn.LayerNorm(sizes.width)
        self.register_buffer("positions", sinusoids(sizes.positions, sizes.width), persistent=False)
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(
            EncoderLayer(sizes.width, sizes.heads, sizes.inner) for _ in range(sizes.encoder_layers)
        )

    def forward(self, features: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        hidden = self.norm(self.projection(features)) + self.positions[: features.size(1)]
        hidden = self.dropout(hidden)
        for layer in self.layers:
            hidden = layer(hidden, padding)
        return hidden


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.feed_forward = feed_forward(width, inner)
        self.attention_end = SublayerEnd(width)
        self.feed_forward_end = SublayerEnd(width)

    def forward(self, hidden: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        hidden = self.attention_end(hidden, self.attention(hidden, hidden, padding))
        return self.feed_forward_end(hidden, self.feed_forward(hidden))


class Decoder(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        nn.init.normal_(self.embedding.weight, std=sizes.width**-0.5)
        self.scale = math.sqrt(sizes.width)
        self.register_buffer("positions", sinusoids(sizes.positions, sizes.width), persistent=False)
        future = torch.ones(sizes.positions, sizes.positions, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("future", future, persistent=False)
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(
            DecoderLayer(sizes.width, sizes.heads, sizes.inner) for _ in range(sizes.decoder_layers)
        )

    def forward(self, characters: torch.Tensor, heard: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        length = characters.size(1)
        hidden = self.embed(characters, self.positions[:length])
        for layer in self.layers:
            hidden = layer(hidden, heard, self.future[:length, :length], padding)
        return self.scores(hidden)

    def embed(self, characters: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.scale * self.embedding(characters) + positions)

    def scores(self, hidden: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(hidden, self.embedding.weight)


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.self_attention = Attention(width, heads)
        self.attention = Attention(width, heads)
        self.feed_forward = feed_forward(width, inner)
        self.self_attention_end = SublayerEnd(width)
        self.attention_end = SublayerEnd(width)
        self.feed_forward_end = SublayerEnd(width)

    def forward(
        self, hidden: torch.Tensor, heard: torch.Tensor, future: torch.Tensor, padding: torch.Tensor
    ) -> torch.Tensor:
        hidden = self.self_attention_end(hidden, self.self_attention(hidden, hidden, future))
        hidden = self.attention_end(hidden, self.attention(hidden, heard, padding))
        return self.feed_forward_end(hidden, self.feed_forward(hidden))


class Attention(nn.Module):
    """Scaled dot products in several heads, in two halves: a search keeps the keys and values of what it has seen."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, hidden: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        keys, values = self.remember(memory)
        return self.recall(hidden, keys, values, mask)

    def remember(self, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values, [batch, heads, length, width of a head] each."""
        return self.split(self.key(memory)), self.split(self.value(memory))

    def recall(
        self, hidden: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        scores = self.split(self.query(hidden) * self.scale) @ keys.transpose(2, 3)
        weights = self.dropout(scores.masked_fill(mask, -math.inf).softmax(dim=3))
        return self.output((weights @ values).transpose(1, 2).flatten(2))

    def split(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden.unflatten(2, [self.heads, -1]).transpose(1, 2)


class SublayerEnd(nn.Module):
    """Dropout, the shortcut and the normalization behind a sublayer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(DROPOUT)
        self.norm = nn.LayerNorm(width)

    def forward(self, hidden: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        return self.norm(hidden + self.dropout(change))


def feed_forward(width: int, inner: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))


def sinusoids(positions: int, width: int) -> torch.Tensor:
    """[positions, width]: sines in the even columns and cosines in the odd, of ever longer periods."""
    periods = LONGEST_PERIOD ** (torch.arange(0, width, 2) / width)
    angles = torch.arange(positions)[:, None] / periods
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
