"""timm_resnest: timm's ResNeSt-14d for image classification (Zhang et al. 2020), random weights."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.timm_classifier import TimmClassifier
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from timm.layers import SplitAttn  # noqa: E402 - timm imports torchvision: guard first


class Model(TimmClassifier):
    """SGD and cross-entropy on random labels; an inference of one image at full size."""

    ARCHITECTURE = "resnest14d"
    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=1, shape={"image": 224, "classes": 1000, "arguments": {}}),
        "head": Preset(train_batch=32, eval_batch=32, shape={"image": 224, "classes": 1000, "arguments": {}}),
        # 48 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={"image": 48, "classes": 10, "arguments": {"base_width": 16, "stem_width": 8}},
        ),
    }

    def build_network(self) -> nn.Module:
        network = super().build_network()
        if self.test == "train" and self.batch_size == 1:
            normalize_single_values_by_running_statistics(network)
        return network


def normalize_single_values_by_running_statistics(network: nn.Module) -> None:
    """Let the normalization inside of each split attention work on a batch of one image.

    It comes after the mean over the image, so that one image gives it one value per channel, which has no variance:
    torch refuses to train on that.
    """
    for layer in network.modules():
        if isinstance(layer, SplitAttn):
            layer.bn1 = RunningNorm(layer.bn1.num_features)


class RunningNorm(nn.BatchNorm2d):
    """A normalization by the statistics that it holds, in training too."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(
            features, self.running_mean, self.running_var, self.weight, self.bias, training=False, eps=self.eps
        )
