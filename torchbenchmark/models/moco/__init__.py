"""moco: momentum contrast, unsupervised learning of a ResNet-50 against a queue of keys (He et al. 2019)."""

import copy
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.image_classifier import COLOURS
from torchbenchmark.families.residual_network import Bottleneck, ResidualNetwork
from torchbenchmark.model import BenchmarkModel, Preset

KEY_MOMENTUM = 0.999  # how much of the key network stays at each step; the rest comes from the query network
TEMPERATURE = 0.07
RESNET_50 = {"image": 224, "dimensions": 128, "queue": 32000, "widths": (64, 128, 256, 512), "blocks": (3, 4, 6, 3)}
VIEW_NOISE = 0.5  # standard deviation of the noise that sets the second view apart


class Model(BenchmarkModel):
    """train: one step of the query network on two views of a batch of images; the key network follows it by momentum,
    and the keys replace the oldest of the queue. eval: the logits of a batch against a queue that stays as it is.
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=32, shape=RESNET_50),
        "head": Preset(train_batch=32, eval_batch=32, shape=RESNET_50),
        # 32 pixels leave 2x2 at the third stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=16,
            shape={"image": 32, "dimensions": 16, "queue": 256, "widths": (8, 16, 32), "blocks": (1, 1, 1)},
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.contrast = MomentumContrast(shape["widths"], shape["blocks"], shape["dimensions"], shape["queue"])
            self.example_inputs = two_views(self.batch_size, shape["image"])
            if self.test == "train":
                self.first_place = torch.zeros(self.batch_size, dtype=torch.long)
        self.module = self.contrast
        if self.test == "train":
            self.optimizer = torch.optim.SGD(
                self.contrast.query_network.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4
            )

    def forward(self) -> torch.Tensor:
        logits, self.keys = self.call_module()
        return functional.cross_entropy(logits, self.first_place)

    def optimizer_step(self) -> None:
        super().optimizer_step()
        self.contrast.follow()
        self.contrast.enqueue(self.keys)


class MomentumContrast(nn.Module):
    """Two networks of one architecture and a ring of the last keys, one row each."""

    def __init__(self, widths: Sequence[int], blocks: Sequence[int], dimensions: int, queue: int) -> None:
        super().__init__()
        self.temperature = TEMPERATURE  # an attribute, for TorchScript knows no constants of a Python module
        self.query_network = ResidualNetwork(Bottleneck, widths, blocks, classes=dimensions)
        self.key_network = copy.deepcopy(self.query_network).requires_grad_(False)
        self.register_buffer("queue", functional.normalize(torch.randn(queue, dimensions)))
        self.register_buffer("places", torch.arange(queue))
        self.register_buffer("oldest", torch.zeros((), dtype=torch.long))  # on the device: the host need not know

    def forward(self, first_view: torch.Tensor, second_view: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [batch, 1 + queue], those of the true pairs first, and the keys [batch, dimensions]."""
        queries = functional.normalize(self.query_network(first_view))
        with torch.no_grad():
            keys = functional.normalize(self.encode_keys(second_view))
        true_pairs = (queries * keys).sum(dim=1, keepdim=True)
        others = queries @ self.queue.t()
        return torch.cat([true_pairs, others], dim=1) / self.temperature, keys

    def encode_keys(self, images: torch.Tensor) -> torch.Tensor:
        """In training in another order, as if the images came from other devices: their statistics must not tell which
        image belongs to which query."""
        if not self.training:
            return self.key_network(images)
        # not randperm: inductor of torch 2.13 fails to compile what is indexed by one
        order = torch.rand(len(images), device=images.device).argsort()
        return self.key_network(images[order])[order.argsort()]

    @torch.no_grad()
    def follow(self) -> None:
        """The key network moves a little towards the query network."""
        pairs = zip(self.key_network.parameters(), self.query_network.parameters(), strict=True)
        for key_weight, query_weight in pairs:
            key_weight.lerp_(query_weight, 1 - KEY_MOMENTUM)

    @torch.no_grad()
    def enqueue(self, keys: torch.Tensor) -> None:
        """`keys` in the places of the oldest ones; of more keys than places, the last."""
        keys = keys[-len(self.queue) :]
        places = (self.oldest + self.places[: len(keys)]) % len(self.queue)
        self.queue.index_copy_(0, places, keys.to(self.queue.dtype))
        self.oldest.add_(len(keys)).remainder_(len(self.queue))


def two_views(images: int, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random images, and the same ones mirrored and with noise."""
    first = torch.randn(images, COLOURS, side, side)
    return first, first.flip(3) + VIEW_NOISE * torch.randn_like(first)
