"""Demucs: a U-Net on the samples of a recording, with a bidirectional LSTM at its bottom (Défossez et al. 2019).

No layer pads: a level of the encoder leaves out the samples that do not fill its last window, the decoder shortens its
features by what its context needs, and the estimates are shorter than the recording.
"""

import itertools

import torch
from torch import nn
from torch.nn import functional

EARS = 2  # stereo
KERNEL, STRIDE = 8, 4
CONTEXT = 3  # features that the decoder looks at before it makes one longer
GROWTH = 2  # of channels from level to level
REFERENCE_DEVIATION = 0.1  # towards which the first weights are scaled


class Demucs(nn.Module):
    def __init__(self, sources: int, channels: int, levels: int, recurrent_layers: int) -> None:
        super().__init__()
        self.sources = sources
        widths = [EARS, *(channels * GROWTH**level for level in range(levels))]
        outputs = [sources * EARS, *widths[1:-1]]
        self.encoder = nn.ModuleList(encoding(narrow, wide) for narrow, wide in itertools.pairwise(widths))
        self.decoder = nn.ModuleList(
            decoding(wide, narrow, last=level == 0)
            for level, (wide, narrow) in reversed(list(enumerate(zip(widths[1:], outputs, strict=True))))
        )
        deepest = widths[-1]
        self.recurrence = nn.LSTM(deepest, deepest, recurrent_layers, batch_first=True, bidirectional=True)
        self.narrowing = nn.Linear(2 * deepest, deepest)
        scale_first_weights(self)

    def forward(self, recordings: torch.Tensor) -> torch.Tensor:
        """[batch, ears, samples] to estimates [batch, sources, ears, fewer samples]."""
        features = recordings
        skipped: list[torch.Tensor] = []
        for encode in self.encoder:
            features = encode(features)
            skipped.append(features)
        recurrent, _ = self.recurrence(features.transpose(1, 2))
        features = self.narrowing(recurrent).transpose(1, 2)
        for decode in self.decoder:
            skip = skipped.pop()
            features = decode(features + centre(skip, features.size(2)))
        return features.unflatten(1, [self.sources, -1])


def encoding(narrow: int, wide: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(narrow, wide, KERNEL, STRIDE), nn.ReLU(), nn.Conv1d(wide, 2 * wide, kernel_size=1), nn.GLU(dim=1)
    )


def decoding(wide: int, narrow: int, last: bool) -> nn.Sequential:
    layers = [
        nn.Conv1d(wide, 2 * wide, CONTEXT),
        nn.GLU(dim=1),
        nn.ConvTranspose1d(wide, narrow, KERNEL, STRIDE),
    ]
    return nn.Sequential(*layers) if last else nn.Sequential(*layers, nn.ReLU())


def centre(signal: torch.Tensor, length: int) -> torch.Tensor:
    """The middle `length` samples of the last dimension; of an odd rest, the greater half is left out at the end."""
    return signal.narrow(-1, (signal.size(-1) - length) // 2, length)


@torch.no_grad()
def scale_first_weights(network: nn.Module) -> None:
    """Each convolution's weights half the way, by a geometric mean, to the reference deviation; its bias with them."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
            scale = (layer.weight.std() / REFERENCE_DEVIATION).sqrt()
            layer.weight /= scale
            layer.bias /= scale


def separation_loss(estimates: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    """Mean absolute difference of the estimates and the middle of the sources."""
    return functional.l1_loss(estimates, centre(sources, estimates.size(-1)))


def input_length(samples: int, levels: int) -> int:
    """The shortest recording whose estimates have `samples` or more and of which no convolution leaves anything out."""
    length = samples
    for _ in range(levels):
        length = max(-(-(length - KERNEL) // STRIDE) + 1, 1) + CONTEXT - 1
    for _ in range(levels):
        length = (length - 1) * STRIDE + KERNEL
    return length
