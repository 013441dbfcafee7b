"""Random changes of a batch of separate sources before they are mixed, drawn on the device that holds them.

A network that separates music learns from songs that nobody played: each source begins at a time of its own, with its
ears exchanged or its sign turned over, beside sources of other songs.
"""

import torch
from torch import nn

REMIXED = 4  # songs among which sources are exchanged


class Augmentation(nn.Module):
    """[songs, sources, ears, samples] to the same with `shift` samples fewer."""

    def __init__(self, shift: int, samples: int, songs: int) -> None:
        super().__init__()
        self.shift = shift
        self.register_buffer("time", torch.arange(samples - shift), persistent=False)
        self.register_buffer("group", (torch.arange(songs) // REMIXED).unsqueeze(1), persistent=False)

    def forward(self, sources: torch.Tensor) -> torch.Tensor:
        songs, parts, ears = sources.size(0), sources.size(1), sources.size(2)
        one_each = [songs, parts, 1, 1]
        begin = torch.randint(self.shift, one_each, device=sources.device)
        sources = sources.gather(3, (begin + self.time).expand(-1, -1, ears, -1))
        turned_over = torch.randint(2, one_each, device=sources.device)
        sources = sources * (1 - 2 * turned_over)
        exchanged = torch.randint(2, one_each, device=sources.device)
        sources = torch.where(exchanged == 1, sources.flip(2), sources)
        # whole numbers keep the groups apart, the fractions shuffle within them
        order = (self.group + torch.rand(songs, parts, device=sources.device)).argsort(dim=0)
        return sources.gather(0, order.view(one_each).expand_as(sources))
