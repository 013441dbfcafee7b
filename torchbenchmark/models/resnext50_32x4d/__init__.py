"""resnext50_32x4d: residual blocks of 32 parallel paths of 4 channels each (Xie et al. 2016)."""

from torch import nn

from torchbenchmark.families.convolution import normalized_convolution
from torchbenchmark.families.image_classifier import ImageClassifier
from torchbenchmark.families.residual_network import ResidualBlock, ResidualNetwork
from torchbenchmark.model import Preset

PATHS = 32  # the paper's cardinality
FULL = {"image": 224, "classes": 1000, "widths": (64, 128, 256, 512), "blocks": (3, 4, 6, 3)}


class AggregatedBottleneck(ResidualBlock):
    """The bottleneck of ResNet at twice its inner width, with a 3x3 convolution in groups: one group a path."""

    EXPANSION = 4

    def build_residual(self, channels: int, width: int, stride: int) -> nn.Sequential:
        inner = 2 * width
        return nn.Sequential(
            *normalized_convolution(channels, inner, kernel=1),
            nn.ReLU(inplace=True),
            *normalized_convolution(inner, inner, kernel=3, stride=stride, groups=PATHS),
            nn.ReLU(inplace=True),
            *normalized_convolution(inner, width * self.EXPANSION, kernel=1),
        )


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels; an inference of one image at full size."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=8, eval_batch=8, shape=FULL),
        # 32 pixels leave 2x2 at the third stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={"image": 32, "classes": 10, "widths": (16, 32, 64), "blocks": (1, 1, 1)},
        ),
    }

    def build_network(self) -> ResidualNetwork:
        return ResidualNetwork(AggregatedBottleneck, self.shape["widths"], self.shape["blocks"], self.shape["classes"])
