"""resnet50_quantized_qat: resnet50 trained for int8, and its inference in int8 (Jacob et al. 2017)."""

from torchbenchmark.families.quantized_classifier import QuantizedClassifier
from torchbenchmark.model import Preset
from torchbenchmark.models.resnet50 import Model as ResNet50


class Model(QuantizedClassifier, ResNet50):
    """The shapes of resnet50; the later branch had no others for it, so there is no size `head`."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=ResNet50.PRESETS["full"].shape),
        "tiny": Preset(train_batch=4, eval_batch=8, shape=ResNet50.PRESETS["tiny"].shape),
    }
