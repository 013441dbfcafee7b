"""timm_regnet: timm's RegNetY for image classification (Radosavovic et al. 2020), random weights.

V1 measured RegNetY-200MF under this name; TorchBench today measures RegNetY-12GF.
"""

from torchbenchmark.families.timm_classifier import TimmClassifier
from torchbenchmark.model import Preset


class Model(TimmClassifier):
    """SGD and cross-entropy on random labels; an inference of one image at full size.

    `tiny` gives the design space's formula other constants: from the first width and the slope of the widths come four
    stages of 1, 1, 2 and 2 blocks.
    """

    ARCHITECTURE = "regnety_002"
    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=1, shape={"image": 224, "classes": 1000, "arguments": {}}),
        "head": Preset(
            train_batch=32,
            eval_batch=32,
            shape={"image": 224, "classes": 1000, "architecture": "regnety_120", "arguments": {}},
        ),
        # 64 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=4,
            eval_batch=4,
            shape={
                "image": 64,
                "classes": 10,
                "arguments": {"depth": 6, "w0": 8, "wa": 12.0, "wm": 2.0, "group_size": 8, "stem_width": 8},
            },
        ),
    }
