"""Reformer (Kitaev et al. 2020): axial positions, reversible layers of chunked attention, and a head for all tokens."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.models.hf_Reformer.attention import HashedAttention, LocalAttention
from torchbenchmark.models.hf_Reformer.reversible import DROPOUT, ReversibleLayer, run_reversible

INITIAL_DEVIATION = 0.02  # of linear layers and embeddings; that of the positions is 1


@dataclass(frozen=True)
class Sizes:
    vocabulary: int
    width: int
    heads: int
    head_width: int
    inner: int  # width inside of the feed-forward networks
    layers: int  # local attention in the first, hashed attention in the second, and so on
    chunk: int  # tokens
    buckets: int
    axes: tuple[int, int]  # the positions as a rectangle, row by row
    axis_widths: tuple[int, int]


class Reformer(nn.Module):
    """Token ids (batch, tokens) -> scores (batch, tokens, vocabulary); as many tokens as the axes have positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = AxialPositions(sizes.axes, sizes.axis_widths)
        self.layers = nn.ModuleList(build_layer(sizes, hashed=index % 2 == 1) for index in range(sizes.layers))
        self.norm = nn.LayerNorm(2 * sizes.width, eps=1e-12)
        self.head = nn.Linear(2 * sizes.width, sizes.vocabulary)
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Embedding):
                nn.init.normal_(layer.weight, std=INITIAL_DEVIATION)
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        embedded = functional.dropout(self.tokens(input_ids), DROPOUT, self.training)
        embedded = embedded + self.positions(input_ids.shape[0])
        states = torch.cat(run_reversible(self.layers, embedded, self.training), dim=-1)
        return self.head(functional.dropout(self.norm(states), DROPOUT, self.training))


def build_layer(sizes: Sizes, hashed: bool) -> ReversibleLayer:
    if hashed:
        attention = HashedAttention(sizes.width, sizes.heads, sizes.head_width, sizes.chunk, sizes.buckets)
    else:
        attention = LocalAttention(sizes.width, sizes.heads, sizes.head_width, sizes.chunk)
    return ReversibleLayer(attention, sizes.width, sizes.inner)


class AxialPositions(nn.Module):
    """The encoding of a position is that of its row beside that of its column; dropout takes away whole columns."""

    def __init__(self, axes: tuple[int, int], widths: tuple[int, int]) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(axes[0], 1, widths[0]))
        self.columns = nn.Parameter(torch.randn(1, axes[1], widths[1]))

    def forward(self, batch: int) -> torch.Tensor:
        rows = self.rows.expand(-1, self.columns.shape[1], -1)
        columns = self.columns.expand(self.rows.shape[0], -1, -1)
        rectangle = torch.cat([rows, columns], dim=-1).expand(batch, -1, -1, -1)
        dropped = functional.dropout2d(rectangle.transpose(1, 2), DROPOUT, self.training)
        return dropped.transpose(1, 2).flatten(1, 2)
