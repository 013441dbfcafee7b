"""LearningToPaint: the neural renderer of brush strokes that its painting agent learns through (Huang et al. 2019)."""

import itertools
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.LearningToPaint import strokes

LEARNING_RATE = 3e-6


class Model(BenchmarkModel):
    """train: one step of the renderer towards the true pictures of random strokes. eval: the pictures of a batch.

    The agent that paints with the renderer is no part of V1's workload.
    """

    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=64, shape={"hidden": (512, 1024, 2048), "seed": 16}),
        "tiny": Preset(train_batch=16, eval_batch=64, shape={"hidden": (64, 128, 256), "seed": 8}),
    }

    def setup(self) -> None:
        with torch.device(self.device):
            self.module = StrokeRenderer(self.shape["hidden"], self.shape["seed"])
            self.example_inputs = (torch.rand(self.batch_size, strokes.NUMBERS),)
            if self.test == "train":
                self.pictures = strokes.draw(*self.example_inputs, self.module.picture_side)
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return functional.mse_loss(self.call_module(), self.pictures)


class StrokeRenderer(nn.Module):
    """From the numbers of strokes [batch, 10] to grey pictures [batch, side, side]: linear layers make 16 small maps,
    which pairs of convolutions refine; after each pair, channels become pixels and the side doubles."""

    SEED_CHANNELS = 16
    PAIRS = ((32, 32), (16, 16), (8, 4))  # output channels of the two convolutions
    UPSCALING = 2

    def __init__(self, hidden: Sequence[int], seed: int) -> None:
        super().__init__()
        widths = (strokes.NUMBERS, *hidden, self.SEED_CHANNELS * seed**2)
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        layers.append(nn.Unflatten(1, (self.SEED_CHANNELS, seed, seed)))
        channels = self.SEED_CHANNELS
        for first, second in self.PAIRS:
            layers += [nn.Conv2d(channels, first, kernel_size=3, padding=1), nn.ReLU()]
            layers += [nn.Conv2d(first, second, kernel_size=3, padding=1), nn.PixelShuffle(self.UPSCALING)]
            channels = second // self.UPSCALING**2
        self.layers = nn.Sequential(*layers)
        self.picture_side = seed * self.UPSCALING ** len(self.PAIRS)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        ink = self.layers(numbers).squeeze(1).sigmoid()
        return 1 - ink
