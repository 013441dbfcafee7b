"""timm_efficientnet: timm's MixNet-M for image classification (Tan and Le 2019), random weights.

V1 gave this name to a MixNet, which timm builds with its EfficientNet class; TorchBench today measures EfficientNet-B0
under it.
"""

from torch import nn

from torchbenchmark.families.timm_classifier import TimmClassifier
from torchbenchmark.model import Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

from timm.models.efficientnet import EfficientNet, decode_arch_def  # noqa: E402 - timm imports torchvision: guard first


class Model(TimmClassifier):
    """SGD and cross-entropy on random labels; an inference of one image at full size.

    The library lets nobody narrow the architecture, so `tiny` is put together of the same kinds of blocks, in the
    library's notation: convolutions of mixed kernel sizes, squeeze and excitation, swish.
    """

    ARCHITECTURE = "mixnet_m"
    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=1, shape={"image": 224, "classes": 1000, "arguments": {}}),
        "head": Preset(
            train_batch=32,
            eval_batch=64,
            shape={"image": 224, "classes": 1000, "architecture": "efficientnet_b0", "arguments": {}},
        ),
        # 32 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=4,
            shape={
                "image": 32,
                "classes": 10,
                "stem": 8,
                "blocks": (
                    "ds_r1_k3_s1_e1_c8",
                    "ir_r1_k3.5_a1.1_p1.1_s2_e3_c16",
                    "ir_r1_k3.5.7_s2_e3_c24_se0.5_nsw",
                    "ir_r1_k3.5_a1.1_p1.1_s2_e3_c32_se0.25_nsw",
                ),
                "head": 64,
            },
        ),
    }

    def build_network(self) -> nn.Module:
        if "blocks" not in self.shape:
            return super().build_network()
        return EfficientNet(
            decode_arch_def([[block] for block in self.shape["blocks"]]),
            num_classes=self.shape["classes"],
            num_features=self.shape["head"],
            stem_size=self.shape["stem"],
        )
