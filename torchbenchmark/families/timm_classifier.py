"""The work that V1's image classifiers of timm have in common: the library's network, trained by SGD with momentum."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import nn

from torchbenchmark.families.image_classifier import ImageClassifier
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

import timm  # noqa: E402 - timm imports torchvision, which the guard above has to prepare


class TimmClassifier(ImageClassifier):
    """A subclass names the architecture, for which a preset's shape may name another, `architecture`; the `arguments`
    of a preset's shape replace those of the architecture."""

    ARCHITECTURE: ClassVar[str]

    def build_network(self) -> nn.Module:
        architecture = self.shape.get("architecture", self.ARCHITECTURE)
        return timm.create_model(
            architecture, pretrained=False, num_classes=self.shape["classes"], **self.shape["arguments"]
        )

    def build_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, weight_decay=1e-4)
