"""The block-sparse attention of BigBird (Zaheer et al. 2020, section 2 and appendix D), for sequences without padding.

The sequence is cut into blocks. The first and the last block attend to all blocks and all attend to them; each other
block attends besides to itself, to its two neighbours, and to a few blocks that are drawn at random for each head.
"""

import math

import torch
from torch import nn


def draw_random_blocks(heads: int, blocks: int, count: int, seed: int) -> torch.Tensor:
    """For each head and each block but the first and the last, `count` blocks that it does not attend to anyway.

    Shape: heads, blocks - 2, count. Drawn on the CPU, so that they are the same for all devices.
    """
    block = torch.arange(blocks, device="cpu")
    near = (block[1:-1, None] - block).abs() <= 1
    attended_anyway = near | (block == 0) | (block == blocks - 1)
    generator = torch.Generator("cpu").manual_seed(seed)
    order = torch.rand(heads, blocks - 2, blocks, generator=generator, device="cpu")
    return order.masked_fill(attended_anyway, -1).topk(count).indices


class BlockSparseAttention(nn.Module):
    """Takes the place of the library's: it has the same projections, and is called with the same arguments."""

    gathered: torch.Tensor

    def __init__(self, query: nn.Linear, key: nn.Linear, value: nn.Linear, random_blocks: torch.Tensor) -> None:
        super().__init__()
        self.query, self.key, self.value = query, key, value
        self.heads, inner_blocks, self.random = random_blocks.shape
        self.blocks = inner_blocks + 2
        head = torch.arange(self.heads, device="cpu").view(-1, 1, 1)
        places = (head * self.blocks + random_blocks).flatten()  # among the blocks of all heads
        self.register_buffer("gathered", places.to(query.weight.device), persistent=False)

    def forward(self, hidden_states: torch.Tensor, *_: object, **__: object) -> tuple[torch.Tensor, None]:
        """The masks that the library hands over hide nothing. It would return the attention weights too."""
        query, key, value = (self.split(layer(hidden_states)) for layer in (self.query, self.key, self.value))
        keys, values = ChosenBlocks(self, key), ChosenBlocks(self, value)
        ends = attend(torch.cat([query[:, :, 0], query[:, :, -1]], dim=2), keys.all, values.all).chunk(2, dim=2)
        inner = attend(query[:, :, 2:-2], keys.inner, values.inner).flatten(2, 3)
        second = attend(query[:, :, 1], keys.second, values.second)
        last_but_one = attend(query[:, :, -2], keys.last_but_one, values.last_but_one)
        context = torch.cat([ends[0], second, inner, last_but_one, ends[1]], dim=2)
        return context.transpose(1, 2).flatten(2), None

    def split(self, features: torch.Tensor) -> torch.Tensor:
        """Batch, tokens, width -> batch, heads, blocks, tokens of a block, width of a head."""
        batch, tokens, width = features.shape
        per_head = features.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
        return per_head.unflatten(2, (self.blocks, tokens // self.blocks))


class ChosenBlocks:
    """The keys, or the values, that each group of blocks attends to, one block's after the other's."""

    def __init__(self, attention: BlockSparseAttention, split: torch.Tensor) -> None:
        first, last = split[:, :, 0], split[:, :, -1]
        drawn = split.flatten(1, 2).index_select(1, attention.gathered)
        drawn = drawn.unflatten(1, (attention.heads, attention.blocks - 2, attention.random)).flatten(3, 4)
        everywhere = (split.shape[0], attention.heads, attention.blocks - 4, *first.shape[2:])
        self.all = split.flatten(2, 3)
        self.second = torch.cat([split[:, :, :3].flatten(2, 3), last, drawn[:, :, 0]], dim=2)
        self.last_but_one = torch.cat([first, split[:, :, -3:].flatten(2, 3), drawn[:, :, -1]], dim=2)
        self.inner = torch.cat(
            [
                first.unsqueeze(2).expand(everywhere),
                split[:, :, 1:-3],
                split[:, :, 2:-2],
                split[:, :, 3:-1],
                last.unsqueeze(2).expand(everywhere),
                drawn[:, :, 1:-1],
            ],
            dim=3,
        )


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return scores.softmax(dim=-1) @ value
