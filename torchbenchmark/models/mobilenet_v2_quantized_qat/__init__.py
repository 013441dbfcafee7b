"""mobilenet_v2_quantized_qat: mobilenet_v2 trained for int8, and its inference in int8 (Jacob et al. 2017)."""

from torchbenchmark.families.quantized_classifier import QuantizedClassifier
from torchbenchmark.model import Preset
from torchbenchmark.models.mobilenet_v2 import Model as MobileNetV2


class Model(QuantizedClassifier, MobileNetV2):
    """The shapes of mobilenet_v2; the later branch had no others for it, so there is no size `head`."""

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=1, shape=MobileNetV2.PRESETS["full"].shape),
        "tiny": Preset(train_batch=4, eval_batch=8, shape=MobileNetV2.PRESETS["tiny"].shape),
    }
