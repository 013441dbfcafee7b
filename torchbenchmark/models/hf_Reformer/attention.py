"""The two attentions of Reformer, both in chunks: each token attends to its chunk and to the one before.

In local attention the chunks are stretches of the sequence. In hashed attention the tokens are sorted first, by the
bucket into which their query falls under random rotations (Andoni et al. 2015), so that a chunk has similar tokens.
The first chunk's predecessor is the last one.
"""

import math

import torch
from torch import nn

OWN_TOKEN = -1e5  # the score of a token with itself, where query and key are the same vector: only if nothing else is


def look_back(chunks: torch.Tensor) -> torch.Tensor:
    """Batch, heads, chunks, tokens, ... -> the same with the previous chunk's tokens before each chunk's own."""
    return torch.cat([chunks.roll(1, dims=2), chunks], dim=3)


class ChunkedAttention(nn.Module):
    keep_weights: float  # the share of attention weights that dropout leaves in training

    def __init__(self, width: int, heads: int, head_width: int, chunk: int, projections: tuple[str, ...]) -> None:
        super().__init__()
        self.heads, self.head_width, self.chunk = heads, head_width, chunk
        for name in projections:
            self.add_module(name, nn.Linear(width, heads * head_width, bias=False))
        self.output = nn.Linear(heads * head_width, width, bias=False)

    def split(self, features: torch.Tensor) -> torch.Tensor:
        """Batch, tokens, width -> batch, heads, tokens, width of a head."""
        return features.unflatten(2, (self.heads, self.head_width)).transpose(1, 2)

    def in_chunks(self, sequence: torch.Tensor) -> torch.Tensor:
        return sequence.unflatten(2, (-1, self.chunk))

    def merge(self, context: torch.Tensor) -> torch.Tensor:
        """Batch, heads, tokens, width of a head -> batch, tokens, width."""
        return self.output(context.transpose(1, 2).flatten(2))

    def weights_shape(self, states: torch.Tensor) -> tuple[int, ...]:
        batch, tokens, _ = states.shape
        return batch, self.heads, tokens // self.chunk, self.chunk, 2 * self.chunk


class LocalAttention(ChunkedAttention):
    keep_weights = 0.95

    def __init__(self, width: int, heads: int, head_width: int, chunk: int) -> None:
        super().__init__(width, heads, head_width, chunk, ("query", "key", "value"))

    def forward(
        self, states: torch.Tensor, kept: torch.Tensor | None, order: torch.Tensor | None
    ) -> tuple[torch.Tensor, None]:
        """`kept` says which attention weights dropout leaves; there is no order but the sequence's."""
        query, key, value = (self.in_chunks(self.split(layer(states))) for layer in (self.query, self.key, self.value))
        scores = query @ look_back(key / math.sqrt(self.head_width)).transpose(-1, -2)
        weights = scores.softmax(dim=-1)
        if kept is not None:
            weights = weights * kept / self.keep_weights
        return self.merge((weights @ look_back(value)).flatten(2, 3)), None


class HashedAttention(ChunkedAttention):
    keep_weights = 1.0
    rotations: torch.Tensor

    def __init__(self, width: int, heads: int, head_width: int, chunk: int, buckets: int) -> None:
        super().__init__(width, heads, head_width, chunk, ("query_key", "value"))
        self.register_buffer("rotations", torch.randn(heads, head_width, buckets // 2))

    def forward(
        self, states: torch.Tensor, kept: torch.Tensor | None, order: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`order` is that of an earlier pass over the same states; it is returned. No attention weight is dropped."""
        query_key, value = self.split(self.query_key(states)), self.split(self.value(states))
        if order is None:
            order = self.bucket_of(query_key.detach()).sort(dim=-1, stable=True).indices
        by_token = order.unsqueeze(-1).expand_as(query_key)
        query = self.in_chunks(query_key.gather(2, by_token))
        value = look_back(self.in_chunks(value.gather(2, by_token)))
        key = look_back(normalized(query) / math.sqrt(self.head_width))
        position = self.in_chunks(order)
        own = position.unsqueeze(-1) == look_back(position).unsqueeze(-2)
        scores = query @ key.transpose(-1, -2)
        weights = scores.masked_fill(own, max(OWN_TOKEN, torch.finfo(scores.dtype).min)).softmax(dim=-1)
        context = (weights @ value).flatten(2, 3)
        return self.merge(torch.zeros_like(context).scatter(2, by_token, context)), order

    def bucket_of(self, vectors: torch.Tensor) -> torch.Tensor:
        """The axis, of the rotated ones and their opposites, that is nearest to a vector."""
        rotated = vectors @ self.rotations
        return torch.cat([rotated, -rotated], dim=-1).argmax(dim=-1)


def normalized(vectors: torch.Tensor) -> torch.Tensor:
    return vectors * torch.rsqrt(vectors.square().mean(dim=-1, keepdim=True) + 1e-6)
