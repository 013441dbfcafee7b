"""tts_angular: a synthesizer's speaker encoder (Wan et al. 2018), with the angular prototypical loss (Chung et al.
2020)."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset

LEARNING_RATE = 1e-4
FULL = {"mels": 40, "frames": 50, "utterances": 2, "hidden": 768, "width": 256, "layers": 3}
V1 = Preset(train_batch=32, eval_batch=64, shape=FULL)  # 32 speakers with two utterances each, and 64 utterances


class Model(BenchmarkModel):
    """train: rectified Adam on `utterances` of each speaker of a batch. eval: an embedding of each utterance.

    So the batch of a training counts speakers, that of an inference utterances: the loss compares a speaker's utterance
    with the mean of the others, and no batch may leave a speaker without one.
    """

    PRESETS = {
        "full": V1,
        "head": V1,
        "tiny": Preset(
            train_batch=8,
            eval_batch=16,
            shape={"mels": 40, "frames": 12, "utterances": 3, "hidden": 96, "width": 32, "layers": 3},
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.module = SpeakerEncoder(shape["mels"], shape["hidden"], shape["width"], shape["layers"])
            utterances = (self.batch_size, shape["utterances"]) if self.test == "train" else (self.batch_size,)
            spectra = torch.randn(*utterances, shape["frames"], shape["mels"])
            if self.test == "train":
                self.loss = AngularPrototypicalLoss(self.batch_size)
                spectra += torch.randn(self.batch_size, 1, 1, shape["mels"])  # each speaker's own, to be found
            self.example_inputs = (spectra,)
        if self.test == "train":
            parameters = [*self.module.parameters(), *self.loss.parameters()]
            self.optimizer = torch.optim.RAdam(parameters, lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return self.loss(self.call_module())


class SpeakerEncoder(nn.Module):
    """Recurrent layers with a projection behind each; the last frame, on the unit sphere, stands for the utterance."""

    def __init__(self, mels: int, hidden: int, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ProjectedLSTM(width if layer else mels, hidden, width) for layer in range(layers))

    def forward(self, spectra: torch.Tensor) -> torch.Tensor:
        """[..., frames, mels] to [..., width]."""
        features = spectra.flatten(0, -3)
        for layer in self.layers:
            features = layer(features)
        embeddings = functional.normalize(features[:, -1], dim=-1)
        return embeddings.unflatten(0, spectra.shape[:-2])


class ProjectedLSTM(nn.Module):
    """The projection is behind the recurrence, not in it: a step reads the whole hidden state of the one before."""

    def __init__(self, inputs: int, hidden: int, width: int) -> None:
        super().__init__()
        self.recurrence = nn.LSTM(inputs, hidden, batch_first=True)
        self.projection = nn.Linear(hidden, width, bias=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.recurrence(features)
        return self.projection(hidden)


class AngularPrototypicalLoss(nn.Module):
    """Which speaker an utterance is of, told from its cosines to all speakers' prototypes.

    The query is a speaker's last utterance, the prototype the mean of the others. The scale of the cosines is learned.
    The paper's offset is not here: it is the same for all speakers, so it cancels in the cross-entropy.
    """

    INITIAL_SCALE = 10.0
    LEAST_SCALE = 1e-6

    def __init__(self, speakers: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(self.INITIAL_SCALE))
        self.register_buffer("speakers", torch.arange(speakers), persistent=False)

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        """[speakers, utterances, width], of length 1, to a scalar."""
        queries = embeddings[:, -1]
        prototypes = functional.normalize(embeddings[:, :-1].mean(dim=1), dim=-1)
        scores = self.scale.clamp(min=self.LEAST_SCALE) * queries @ prototypes.T
        return functional.cross_entropy(scores, self.speakers)
