"""Image classifiers that are trained for int8 and asked in int8 (Jacob et al. 2017), by torch's FX graph mode.

torch calls that mode deprecated, and each release may be the last to have it: a build without it cannot run these
models, and says so. What it warns of is known here, and not repeated by each process.
"""

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType

import torch
from torch import nn

from torchbenchmark.families.image_classifier import COLOURS, ImageClassifier

# the ranges of V1: activations of 7 bits, which 16-bit sums of products cannot overflow; weights of 8 bits by channel
RANGES = "fbgemm"
WARNINGS = (
    ".*torch.ao.quantization is deprecated",
    ".*reduce_range will be deprecated",
    ".*quantized tensor creation functions",
)

with suppress(ImportError):  # a model says so when it is built; where it is there, no first batch waits for it
    importlib.import_module("torch.ao.quantization.quantize_fx")
    importlib.import_module("torch._inductor")  # which the conversion to int8 asks


class QuantizedClassifier(ImageClassifier):
    """train: a step in 32 bits in which weights and activations are rounded as int8 would, over ranges that follow what
    they have seen. eval: the network in int8, on the CPU, for which alone torch has such kernels.

    It stands before the class of the network in 32 bits, whose layers, data and optimizer it takes. On the meta device
    an inference stays in 32 bits: weights in int8 are packed for kernels, and that device has none.
    """

    def setup(self) -> None:
        if self.test == "eval" and self.device not in ("cpu", "meta"):
            raise NotImplementedError(
                f"{self.name} has no inference on {self.device}: torch's int8 kernels are the CPU's"
            )
        with without_known_warnings():
            super().setup()
            if self.test == "eval" and self.device == "cpu":
                self.module = in_int8(self.module, self.example_inputs)

    def build_network(self) -> nn.Module:
        image = self.shape["image"]
        return prepared(super().build_network(), torch.zeros(1, COLOURS, image, image))


def prepared(network: nn.Module, images: torch.Tensor) -> nn.Module:
    """`network`, its convolutions joined with their normalizations, rounding as int8 would."""
    quantization, graph_mode = quantization_of_the_build()
    ranges = quantization.QConfigMapping().set_global(quantization.get_default_qat_qconfig(RANGES))
    return graph_mode.prepare_qat_fx(network, ranges, (images,))


def in_int8(network: nn.Module, images: tuple[torch.Tensor, ...]) -> nn.Module:
    """A prepared network in int8, its statistics and ranges those of an inference of `images`.

    An untrained network has statistics that normalize nothing: the deeper a layer of MobileNetV2, the smaller are its
    outputs, until all of them round to 0.
    """
    quantization, graph_mode = quantization_of_the_build()
    if torch.backends.quantized.engine in ("none", None):
        raise NotImplementedError("this build of torch has no int8 kernels: torch.backends.quantized.engine is none")
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0  # what is seen next is all that counts
    with torch.no_grad():
        network.apply(quantization.disable_observer).apply(quantization.disable_fake_quant)
        network(*images)
        network.apply(quantization.enable_observer).apply(quantization.enable_fake_quant).eval()
        network(*images)
    return graph_mode.convert_fx(network)


def quantization_of_the_build() -> tuple[ModuleType, ModuleType]:
    """torch.ao.quantization and its FX graph mode."""
    try:
        return (
            importlib.import_module("torch.ao.quantization"),
            importlib.import_module("torch.ao.quantization.quantize_fx"),
        )
    except ImportError as error:
        raise NotImplementedError(f"this build of torch has no FX graph mode quantization ({error})") from error


@contextmanager
def without_known_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        for message in WARNINGS:
            warnings.filterwarnings("ignore", message)
        yield
