"""timm_nfnet: timm's NFNet-F0 as DeepMind published it (Brock et al. 2021), random weights."""

from torchbenchmark.families.timm_classifier import TimmClassifier
from torchbenchmark.model import Preset


class Model(TimmClassifier):
    """SGD and cross-entropy on random labels; an inference of one image at full size.

    The images are of 192 x 192, the size at which the network was trained. It has no batch normalization: the weights
    of its convolutions are standardized in each pass.
    """

    ARCHITECTURE = "dm_nfnet_f0"
    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=1, shape={"image": 192, "classes": 1000, "arguments": {}}),
        "head": Preset(train_batch=128, eval_batch=128, shape={"image": 192, "classes": 1000, "arguments": {}}),
        "tiny": Preset(
            train_batch=4,
            eval_batch=4,
            shape={
                "image": 32,
                "classes": 10,
                "arguments": {
                    "depths": (1, 1, 1, 1),
                    "channels": (16, 32, 48, 48),
                    "stem_chs": 16,
                    "group_size": 8,
                    "num_features": 96,
                },
            },
        ),
    }
