"""speech_transformer: attention alone from speech to characters (Dong et al. 2018, Speech-Transformer)."""

import torch
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.speech_transformer.beam_search import END, START, BeamSearch
from torchbenchmark.models.speech_transformer.network import Sizes, SpeechTransformer
from torchbenchmark.models.speech_transformer.schedule import WarmedUpRate

SMOOTHING = 0.1
BETAS, EPSILON = (0.9, 0.98), 1e-9
RATE_FACTOR = 0.2
WARM_UP = 4000
NO_CHARACTER = -100  # a target behind the end of a sentence

MELS, STACKED = 80, 4  # frames of 10 ms are stacked by four, every third time
FULL = {
    "sizes": Sizes(
        features=MELS * STACKED,
        vocabulary=1014,
        width=512,
        heads=8,
        inner=2048,
        encoder_layers=6,
        decoder_layers=6,
        positions=512,
    ),
    "train_frames": 240,  # of the longest utterance
    "characters": 25,  # of the longest sentence, and its end
    "eval_frames": 97,
    "beam": 5,
    "steps": 100,
    "warm_up": WARM_UP,
}


class Model(BenchmarkModel):
    """train: Adam and smoothed cross-entropy on sentences of several lengths. eval: a beam search for each utterance.

    The module of an inference is the search, which has the network in it.
    """

    PRESETS = {
        "full": Preset(train_batch=16, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "tiny": Preset(
            train_batch=4,
            eval_batch=1,
            shape={
                "sizes": Sizes(
                    features=32,
                    vocabulary=40,
                    width=48,
                    heads=3,
                    inner=96,
                    encoder_layers=2,
                    decoder_layers=2,
                    positions=32,
                ),
                "train_frames": 24,
                "characters": 10,
                "eval_frames": 20,
                "beam": 5,
                "steps": 8,
                "warm_up": 100,
            },
        ),
    }

    def setup(self) -> None:
        shape, sizes = self.shape, self.shape["sizes"]
        with torch.device(self.device):
            network = SpeechTransformer(sizes)
            frames = lengths(self.batch_size, shape[f"{self.test}_frames"])
            features = torch.randn(self.batch_size, shape[f"{self.test}_frames"], sizes.features)
            if self.test == "eval":
                self.module = BeamSearch(network, shape["beam"], shape["steps"])
                self.example_inputs = (features, frames)
            else:
                self.module = network
                characters, self.targets = random_sentences(self.batch_size, shape["characters"], sizes.vocabulary)
                self.example_inputs = (features, frames, characters)
        if self.test == "train":
            self.optimizer = torch.optim.Adam(network.parameters(), betas=BETAS, eps=EPSILON)
            WarmedUpRate(self.optimizer, sizes.width, shape["warm_up"], RATE_FACTOR)

    def forward(self) -> torch.Tensor:
        scores = self.call_module()
        return functional.cross_entropy(
            scores.flatten(0, 1), self.targets.flatten(), ignore_index=NO_CHARACTER, label_smoothing=SMOOTHING
        )


def lengths(count: int, longest: int) -> torch.Tensor:
    """From the longest evenly down to a little over its half."""
    return longest - torch.arange(count) * longest // (2 * count)


def random_sentences(sentences: int, longest: int, vocabulary: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What the decoder reads, [sentences, longest], its start before the characters, and what it is to say, its end
    behind them."""
    position = torch.arange(longest)
    last = lengths(sentences, longest)[:, None] - 1  # where the end is to be said
    characters = torch.randint(END + 1, vocabulary, (sentences, longest))
    read = torch.cat([torch.full((sentences, 1), START), characters[:, :-1]], dim=1)
    targets = torch.where(position == last, END, characters).where(position <= last, NO_CHARACTER)
    return read.where(position <= last, END), targets
