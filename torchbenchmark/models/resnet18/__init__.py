"""resnet18: an 18-layer residual network for image classification (He et al. 2015)."""

from torchbenchmark.families.image_classifier import ImageClassifier
from torchbenchmark.families.residual_network import BasicBlock, ResidualNetwork
from torchbenchmark.model import Preset

FULL = {"image": 224, "classes": 1000, "widths": (64, 128, 256, 512), "blocks": (2, 2, 2, 2)}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels; an inference of one image at full size."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=16, eval_batch=8, shape=FULL),
        # 64 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={"image": 64, "classes": 10, "widths": (8, 16, 32, 64), "blocks": (1, 1, 1, 1)},
        ),
    }

    def build_network(self) -> ResidualNetwork:
        return ResidualNetwork(BasicBlock, self.shape["widths"], self.shape["blocks"], self.shape["classes"])
