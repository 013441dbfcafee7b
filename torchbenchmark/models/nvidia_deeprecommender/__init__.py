"""nvidia_deeprecommender: a deep auto-encoder that fills in ratings (Kuchaiev and Ginsburg 2017)."""

import itertools
from collections.abc import Sequence

import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel, Preset

LEARNING_RATE = 0.005
MOMENTUM = 0.9
CODE_DROPOUT = 0.8
RATED = 0.01  # share of the items that a user has rated, as in the data of Netflix
HIGHEST_RATING = 5


class Model(BenchmarkModel):
    """train: one batch of the paper's algorithm, which is two steps of the optimizer. The first is on what users have
    rated. In the second, the dense re-feeding, the answer is a further example that should be answered with itself.
    eval: the ratings of all items for one user at full size.

    Two dependent steps are no staged trio: `train()` is the only way to train.
    """

    PRESETS = {
        "full": Preset(train_batch=128, eval_batch=1, shape={"items": 15178, "widths": (512, 512, 1024)}),
        "head": Preset(train_batch=256, eval_batch=256, shape={"items": 197951, "widths": (512, 512, 1024)}),
        "tiny": Preset(train_batch=16, eval_batch=256, shape={"items": 4096, "widths": (64, 64, 128)}),
    }

    def setup(self) -> None:
        items = self.shape["items"]
        with torch.device(self.device):
            self.module = AutoEncoder((items, *self.shape["widths"]))
            given = torch.rand(self.batch_size, items) < RATED
            given[:, 0] = True  # nobody has rated nothing
            self.example_inputs = (given * torch.randint(1, HIGHEST_RATING + 1, (self.batch_size, items)).float(),)
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)

    def forward(self) -> torch.Tensor:
        raise NotImplementedError(f"{self.name} has no staged training: a batch is two steps in a row, call train()")

    def train(self) -> torch.Tensor:
        """Both steps. Returns the sum of their losses, detached."""
        (ratings,) = self.example_inputs
        loss, answer = self.learn(ratings)
        again, _ = self.learn(answer)
        return loss + again

    def learn(self, ratings: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """One step towards answering `ratings` with themselves; the loss and the answer, detached."""
        if self.optimizer is None:
            raise NotImplementedError(f"{self.name} has no optimizer: it was built for test={self.test!r}")
        self.optimizer.zero_grad(set_to_none=True)
        answer = self.module(ratings)
        loss = masked_squared_error(answer, ratings)
        loss.backward()
        self.optimizer.step()
        return loss.detach(), answer.detach()


class AutoEncoder(nn.Module):
    """Linear layers from `widths[0]` to `widths[-1]`, dropout on the code, and the same widths back; SELU after
    each."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.encoder = selu_layers(widths)
        self.dropout = nn.Dropout(CODE_DROPOUT)
        self.decoder = selu_layers(widths[::-1])

    def forward(self, ratings: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.dropout(self.encoder(ratings)))


def selu_layers(widths: Sequence[int]) -> nn.Sequential:
    """The weights begin as those of Glorot and Bengio (2010), the biases at 0."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layer = nn.Linear(inputs, outputs)
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.SELU()]
    return nn.Sequential(*layers)


def masked_squared_error(answer: torch.Tensor, ratings: torch.Tensor) -> torch.Tensor:
    """The mean over what is rated; an item that is not has the rating 0."""
    rated = (ratings != 0).to(answer.dtype)
    return (rated * (answer - ratings)).square().sum() / rated.sum()
