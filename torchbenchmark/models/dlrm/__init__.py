"""dlrm: the deep learning recommendation model (Naumov et al. 2019) with sums of embeddings and dot interaction."""

import itertools
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset

LEARNING_RATE = 0.01


class Model(BenchmarkModel):
    """SGD and squared error on random clicks; embedding gradients are sparse.

    `full` is V1's toy of 90 parameters, so it measures dispatch and launch alone. `tiny` is larger on purpose: with
    rows worth fetching and matrices worth multiplying, the embedding, interaction and sparse-update kernels show in it.
    """

    PRESETS = {
        "full": Preset(
            train_batch=2,
            eval_batch=2,
            shape={"rows": (4, 3, 2), "width": 2, "lookups": 10, "dense": 4, "bottom": (3,), "top": (4, 2)},
        ),
        "tiny": Preset(
            train_batch=128,
            eval_batch=1024,
            shape={"rows": (1000,) * 8, "width": 16, "lookups": 10, "dense": 32, "bottom": (64,), "top": (128, 64)},
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.module = DLRM(shape["rows"], shape["width"], shape["dense"], shape["bottom"], shape["top"])
            indices = [torch.randint(rows, (self.batch_size * shape["lookups"],)) for rows in shape["rows"]]
            offsets = torch.arange(0, self.batch_size * shape["lookups"], shape["lookups"])
            self.example_inputs = (torch.rand(self.batch_size, shape["dense"]), indices, offsets)
            if self.test == "train":
                self.clicks = torch.randint(2, (self.batch_size, 1)).float()
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return functional.mse_loss(self.call_module(), self.clicks)


class DLRM(nn.Module):
    """Bottom MLP for the dense features, a table per sparse feature, dot products of all pairs, top MLP to a click."""

    def __init__(self, rows: Sequence[int], width: int, dense: int, bottom: Sequence[int], top: Sequence[int]) -> None:
        super().__init__()
        self.bottom = mlp((dense, *bottom, width), last=nn.ReLU())
        self.tables = nn.ModuleList(nn.EmbeddingBag(count, width, mode="sum", sparse=True) for count in rows)
        vectors = len(rows) + 1
        self.top = mlp((width + vectors * (vectors - 1) // 2, *top, 1), last=nn.Sigmoid())
        # kept on the device: indices made in forward() would be copied from the host in every iteration
        first, second = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("first", first, persistent=False)
        self.register_buffer("second", second, persistent=False)

    def forward(self, dense: torch.Tensor, indices: Sequence[torch.Tensor], offsets: torch.Tensor) -> torch.Tensor:
        """`dense` is [batch, features]; `indices[t]` are rows of table t, those of sample i from `offsets[i]` on."""
        summary = self.bottom(dense)
        sums = [table(lookups, offsets) for table, lookups in zip(self.tables, indices, strict=True)]
        vectors = torch.stack([summary, *sums], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        pairs = products[:, self.first, self.second]
        return self.top(torch.cat([summary, pairs], dim=1))


def mlp(widths: Sequence[int], last: nn.Module) -> nn.Sequential:
    """Linear layers with ReLU between them and `last` at the end."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    layers[-1] = last
    return nn.Sequential(*layers)
