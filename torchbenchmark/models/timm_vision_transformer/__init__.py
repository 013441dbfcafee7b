"""timm_vision_transformer: timm's ViT-S/16 for image classification (Dosovitskiy et al. 2020), random weights."""

from torchbenchmark.families.timm_classifier import TimmClassifier
from torchbenchmark.model import Preset


class Model(TimmClassifier):
    """SGD and cross-entropy on random labels; an inference of one image at full size."""

    ARCHITECTURE = "vit_small_patch16_224"
    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=1, shape={"image": 224, "classes": 1000, "arguments": {}}),
        "head": Preset(train_batch=32, eval_batch=32, shape={"image": 224, "classes": 1000, "arguments": {}}),
        "tiny": Preset(
            train_batch=4,
            eval_batch=4,
            shape={
                "image": 64,
                "classes": 10,
                "arguments": {"img_size": 64, "patch_size": 8, "embed_dim": 64, "depth": 3, "num_heads": 2},
            },
        ),
    }
