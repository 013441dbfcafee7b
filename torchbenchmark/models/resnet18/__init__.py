"""resnet18: an 18-layer residual network for image classification (He et al. 2015), written here in plain torch."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset

LEARNING_RATE = 1e-3
COLOURS = 3


class Model(BenchmarkModel):
    """Adam and cross-entropy on random labels; an inference of one image at full size."""

    PRESETS = {
        "full": Preset(
            train_batch=32,
            eval_batch=1,
            shape={"image": 224, "classes": 1000, "widths": (64, 128, 256, 512), "blocks": (2, 2, 2, 2)},
        ),
        # 64 pixels leave 2x2 at the last stage: batch normalisation then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={"image": 64, "classes": 10, "widths": (8, 16, 32, 64), "blocks": (1, 1, 1, 1)},
        ),
    }

    def setup(self) -> None:
        image, classes = self.shape["image"], self.shape["classes"]
        with torch.device(self.device):
            self.module = ResNet(self.shape["widths"], self.shape["blocks"], classes)
            self.example_inputs = (torch.randn(self.batch_size, COLOURS, image, image),)
            if self.test == "train":
                self.labels = torch.randint(classes, (self.batch_size,))
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return functional.cross_entropy(self.call_module(), self.labels)


class ResNet(nn.Module):
    """A stem that divides the resolution by 4, four stages of basic blocks, and a linear classifier."""

    def __init__(self, widths: Sequence[int], blocks: Sequence[int], classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(COLOURS, widths[0], kernel_size=7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        stages = []
        channels = widths[0]
        for stage, (width, depth) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(depth):
                halve = stage > 0 and block == 0
                stages.append(BasicBlock(channels, width, stride=2 if halve else 1))
                channels = width
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.stages(self.stem(images)))
        return self.classifier(features.flatten(1))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 projection where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(channels, width, kernel_size=3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, width, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(width)
            )
        self.activation = nn.ReLU(inplace=True)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.activation(self.residual(features) + self.shortcut(features))
