"""resnet50: a 50-layer residual network of bottlenecks for image classification (He et al. 2015)."""

from torchbenchmark.families.image_classifier import ImageClassifier
from torchbenchmark.families.residual_network import Bottleneck, ResidualNetwork
from torchbenchmark.model import Preset

FULL = {"image": 224, "classes": 1000, "widths": (64, 128, 256, 512), "blocks": (3, 4, 6, 3)}


class Model(ImageClassifier):
    """Adam and cross-entropy on random labels; an inference of one image at full size."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=FULL),
        "head": Preset(train_batch=32, eval_batch=32, shape=FULL),
        # 32 pixels leave 2x2 at the third stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=8,
            shape={"image": 32, "classes": 10, "widths": (8, 16, 32), "blocks": (1, 1, 1)},
        ),
    }

    def build_network(self) -> ResidualNetwork:
        return ResidualNetwork(Bottleneck, self.shape["widths"], self.shape["blocks"], self.shape["classes"])
