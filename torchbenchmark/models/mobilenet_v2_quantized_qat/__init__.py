"""mobilenet_v2_quantized_qat: mobilenet_v2 trained for int8, and its inference in int8 (Jacob et al. 2017)."""

from torchbenchmark.families.quantized_classifier import QuantizedClassifier
from torchbenchmark.models.mobilenet_v2 import Model as MobileNetV2


class Model(QuantizedClassifier, MobileNetV2):
    """The shapes of mobilenet_v2; the later branch had no others for it, so there is no size `head`."""

    PRESETS = {name: MobileNetV2.PRESETS[name] for name in ("full", "tiny")}
