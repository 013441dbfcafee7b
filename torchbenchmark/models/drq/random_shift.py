"""The augmentation that DrQ is made of (Kostrikov et al. 2020): pictures shifted by a few pixels, each by its own."""

import torch
from torch import nn
from torch.nn import functional

PADDING = 4


class RandomShift(nn.Module):
    """Pictures grown at their edges and cut to size again at a random place. What cuts them is made once: indices made
    in an iteration would have to come from the host."""

    def __init__(self, pictures: int, channels: int, side: int) -> None:
        super().__init__()
        self.register_buffer("pictures", torch.arange(pictures).view(-1, 1, 1, 1))
        self.register_buffer("channels", torch.arange(channels).view(1, -1, 1, 1))
        self.register_buffer("pixels", torch.arange(side))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.cut(pictures, self.draw_offsets())

    def draw_offsets(self) -> torch.Tensor:
        """[2, pictures]: row and column of the grown picture at which the cut begins."""
        return torch.randint(2 * PADDING + 1, (2, len(self.pictures)), device=self.pixels.device)

    def cut(self, pictures: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        grown = functional.pad(pictures, (PADDING,) * 4, mode="replicate")
        rows, columns = offsets[:, :, None] + self.pixels
        return grown[self.pictures, self.channels, rows[:, None, :, None], columns[:, None, None, :]]
