"""The work that V1's image classifiers have in common: random images, random labels, cross-entropy."""

from collections.abc import Iterable

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel

COLOURS = 3
LEARNING_RATE = 1e-3


class ImageClassifier(BenchmarkModel):
    """Cross-entropy on random labels, and Adam as V1 trains the networks of torchvision; an inference of random images.

    A subclass gives the network; its presets' shapes say `image`, the height and width, and `classes`.
    """

    def setup(self) -> None:
        image, classes = self.shape["image"], self.shape["classes"]
        with torch.device(self.device):
            self.module = self.build_network()
            self.example_inputs = (torch.randn(self.batch_size, COLOURS, image, image),)
            if self.test == "train":
                self.labels = torch.randint(classes, (self.batch_size,))
        if self.test == "train":
            self.optimizer = self.build_optimizer(self.module.parameters())

    def build_network(self) -> nn.Module:
        raise NotImplementedError(f"{self.name} has no network: give it a build_network()")

    def build_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return functional.cross_entropy(self.call_module(), self.labels)
