"""opacus_cifar10: private training of an image classifier by DP-SGD (Abadi et al. 2016; Yousefpour et al., Opacus,
2021)."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.image_classifier import COLOURS
from torchbenchmark.families.residual_network import BasicBlock, ResidualNetwork
from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.opacus_cifar10.private import clip_and_sum, per_sample_gradients

LEARNING_RATE = 1e-3
LONGEST_GRADIENT = 1.0  # to which that of each sample is clipped
NOISE = 1.0  # standard deviation of the noise on the sum, as a multiple of the longest gradient
MOST_GROUPS = 32


class Model(BenchmarkModel):
    """train: the gradient of every sample by itself, clipped, summed, made noisy; then a step of Adam.
    eval: a batch of images.

    The gradients are made by `torch.func` and not by `backward`, so there is no staged trio: `train()` is the only way
    to train.
    """

    PRESETS = {
        "full": Preset(
            train_batch=64,
            eval_batch=64,
            shape={"image": 32, "classes": 10, "widths": (64, 128, 256, 512), "blocks": (2, 2, 2, 2)},
        ),
        "head": Preset(
            train_batch=64,
            eval_batch=64,
            shape={"image": 32, "classes": 10, "widths": (64, 128, 256, 512), "blocks": (2, 2, 2, 2)},
        ),
        "tiny": Preset(
            train_batch=4,
            eval_batch=32,
            shape={"image": 32, "classes": 10, "widths": (8, 16, 32, 64), "blocks": (1, 1, 1, 1)},
        ),
    }

    def setup(self) -> None:
        image, classes = self.shape["image"], self.shape["classes"]
        with torch.device(self.device):
            network = ResidualNetwork(BasicBlock, self.shape["widths"], self.shape["blocks"], classes)
            self.module = with_group_normalization(network)
            self.example_inputs = (torch.randn(self.batch_size, COLOURS, image, image),)
            if self.test == "train":
                self.labels = torch.randint(classes, (self.batch_size,))
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        raise NotImplementedError(f"{self.name} has no staged training: each sample has a gradient, call train()")

    def train(self) -> torch.Tensor:
        """One private step. Returns the mean of the samples' losses, detached."""
        if self.optimizer is None:
            raise NotImplementedError(f"{self.name} has no optimizer: it was built for test={self.test!r}")
        (images,) = self.example_inputs
        parameters = dict(self.module.named_parameters())
        gradients, losses = per_sample_gradients(self.module, parameters, functional.cross_entropy, images, self.labels)
        sums = clip_and_sum(gradients, LONGEST_GRADIENT)
        for name, parameter in parameters.items():
            noise = NOISE * LONGEST_GRADIENT * torch.randn_like(sums[name])
            parameter.grad = (sums[name] + noise) / self.batch_size
        self.optimizer.step()
        return losses.mean()


def with_group_normalization(network: nn.Module) -> nn.Module:
    """The network with each batch normalization replaced: one that averages over the batch would mix its samples."""
    for name, child in network.named_children():
        if isinstance(child, nn.BatchNorm2d):
            groups = min(MOST_GROUPS, child.num_features)
            setattr(network, name, nn.GroupNorm(groups, child.num_features))
        else:
            with_group_normalization(child)
    return network
