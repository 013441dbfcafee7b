"""demucs: a recording taken apart into its sources, on the samples themselves (Défossez et al. 2019)."""

import math

import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.demucs.augmentation import Augmentation
from torchbenchmark.models.demucs.network import EARS, Demucs, separation_loss

LEARNING_RATE = 3e-4
SOURCES = 4
FREQUENCIES = (0.002, 0.1)  # of the tones that stand for music, in turns per sample


class Model(BenchmarkModel):
    """train: Adam and the absolute error on songs mixed anew in each step. eval: the sources of each recording.

    The streams of a song are its recording and then its sources; `samples` is their length, `shift` how much later than
    another a source may begin.
    """

    PRESETS = {
        "full": Preset(
            train_batch=4,
            eval_batch=4,
            shape={"channels": 32, "levels": 6, "recurrent_layers": 2, "samples": 135_576, "shift": 44_100},
        ),
        "head": Preset(
            train_batch=64,
            eval_batch=8,
            shape={"channels": 64, "levels": 6, "recurrent_layers": 2, "samples": 426_888, "shift": 44_100},
        ),
        "tiny": Preset(
            train_batch=4,
            eval_batch=4,
            shape={"channels": 8, "levels": 3, "recurrent_layers": 2, "samples": 1_080, "shift": 100},
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.module = Separator(
                Demucs(SOURCES, shape["channels"], shape["levels"], shape["recurrent_layers"]),
                Augmentation(shape["shift"], shape["samples"], self.batch_size),
            )
            self.example_inputs = (random_streams(self.batch_size, shape["samples"]),)
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        estimates, sources = self.call_module()
        return separation_loss(estimates, sources)

    def eval(self) -> tuple[torch.Tensor, ...]:
        estimates, _ = self.call_module()
        return (estimates,)


class Separator(nn.Module):
    """From streams [songs, 1 + sources, ears, samples] to estimates and the sources that they are of.

    In training the sources are changed and mixed; in an inference the recording is taken as it is, and is as long.
    """

    def __init__(self, network: nn.Module, augmentation: Augmentation) -> None:
        super().__init__()
        self.network = network
        self.augmentation = augmentation

    def forward(self, streams: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.training:
            sources = self.augmentation(streams[:, 1:])
            recordings = sources.sum(dim=1)
        else:
            heard = streams[..., : streams.size(-1) - self.augmentation.shift]
            recordings, sources = heard[:, 0], heard[:, 1:]
        return self.network(recordings), sources


def random_streams(songs: int, samples: int) -> torch.Tensor:
    """A tone of its own for each ear of each source, their sum first."""
    low, high = FREQUENCIES
    each = (songs, SOURCES, EARS, 1)
    frequency = low + (high - low) * torch.rand(each)
    tones = (2 * math.pi * (frequency * torch.arange(samples) + torch.rand(each))).sin()
    return torch.cat([tones.sum(dim=1, keepdim=True), tones], dim=1)
