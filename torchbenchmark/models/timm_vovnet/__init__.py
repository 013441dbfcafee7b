"""timm_vovnet: timm's VoVNet-39 for image classification (Lee et al. 2019), random weights."""

from torchbenchmark.families.timm_classifier import TimmClassifier
from torchbenchmark.model import Preset


class Model(TimmClassifier):
    """SGD and cross-entropy on random labels; an inference of one image at full size."""

    ARCHITECTURE = "vovnet39a"
    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=1, shape={"image": 224, "classes": 1000, "arguments": {}}),
        "head": Preset(train_batch=32, eval_batch=32, shape={"image": 224, "classes": 1000, "arguments": {}}),
        # 64 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=4,
            shape={
                "image": 64,
                "classes": 10,
                "arguments": {
                    "stem_chs": (16, 16, 24),
                    "stage_conv_chs": (16, 16, 24, 24),
                    "stage_out_chs": (32, 48, 64, 80),
                    "layer_per_block": 3,
                    "block_per_stage": (1, 1, 1, 2),
                },
            },
        ),
    }
