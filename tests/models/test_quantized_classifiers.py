"""The classifiers for int8: training rounds as int8 would, inference is in int8, and both stay near the network in 32
bits of which they are made."""

import importlib
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.ao.quantization import FakeQuantizeBase, disable_fake_quant, disable_observer

NETWORKS = ("resnet50", "mobilenet_v2")
every_network = pytest.mark.parametrize("name", NETWORKS)


def build(name, test, device="cpu", **options):
    return importlib.import_module(f"torchbenchmark.models.{name}").Model(
        test=test, device=device, preset="tiny", **options
    )


def quantized(name, test, **options):
    return build(f"{name}_quantized_qat", test, **options)


def layers(network):
    return [layer for layer in network.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]


def both(name, test, **options):
    """The one for int8, and that in 32 bits with the same images and labels. The weights are the same."""
    model, plain = quantized(name, test, **options), build(name, test, **options)
    plain.example_inputs = model.example_inputs
    if test == "train":
        plain.labels = model.labels
    return model, plain


@every_network
def test_without_rounding_training_is_that_of_the_network_in_32_bits(name):
    model, plain = both(name, "train")
    model.get_module()[0].apply(disable_observer).apply(disable_fake_quant)
    for _ in range(2):
        losses = []
        for one in (model, plain):
            torch.manual_seed(0)  # for the dropout
            losses.append(one.invoke()[0])
        torch.testing.assert_close(*losses, rtol=1e-3, atol=1e-5)


@every_network
def test_training_rounds_all_weights_to_8_bits_by_channel_and_all_activations_to_7(name):
    model = quantized(name, "train")
    network = model.get_module()[0]
    steps = {"weights": [], "activations": []}

    def note(rounding, _, output):
        if rounding.ch_axis == 0:
            scale = rounding.scale.reshape(-1, *[1] * (output.dim() - 1))
            steps["weights"].append(output / scale)
        else:
            steps["activations"].append(output / rounding.scale + rounding.zero_point)

    for module in network.modules():
        if isinstance(module, FakeQuantizeBase):
            module.register_forward_hook(note)
    model.invoke()
    for (low, high), seen in (((-128, 127), steps["weights"]), ((0, 127), steps["activations"])):
        for values in seen:
            torch.testing.assert_close(values, values.round(), rtol=0, atol=1e-2)
            assert low <= values.round().min() and values.round().max() <= high
        assert max(len(values.round().unique()) for values in seen) > (high - low) * 3 / 4
    assert len(steps["weights"]) == len(layers(build(name, "train").get_module()[0]))
    assert len(steps["activations"]) > len(steps["weights"])


@every_network
def test_the_ranges_follow_what_the_activations_were(name):
    model = quantized(name, "train")
    rounding = next(module for module in model.get_module()[0].modules() if isinstance(module, FakeQuantizeBase))
    (images,) = model.get_module()[1]
    model.invoke()
    low, high = rounding.activation_post_process.min_val, rounding.activation_post_process.max_val
    assert (low, high) == (images.min(), images.max())
    torch.testing.assert_close(rounding.scale, ((high - low) / 127).reshape(1))


@every_network
def test_an_inference_is_in_int8_and_near_the_one_in_32_bits(name):
    model, plain = both(name, "eval", batch_size=32)
    network = model.get_module()[0]
    assert list(network.parameters()) == [] and layers(network) == []
    in_int8 = [module for module in network.modules() if type(module).__module__.startswith("torch.ao.nn")]
    assert len([module for module in in_int8 if hasattr(module, "scale")]) >= len(layers(plain.get_module()[0]))
    for layer in plain.get_module()[0].modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0
    with torch.no_grad():
        plain.get_module()[0].train()(*plain.get_module()[1])  # the statistics of the images, as the other has them
        plain.get_module()[0].eval()
    (ours,), (theirs,) = model.invoke(), plain.invoke()
    assert torch.corrcoef(torch.stack([ours.flatten(), theirs.flatten()]))[0, 1] > 0.95
    assert (ours - theirs).abs().mean() < 0.25 * theirs.std()


def test_an_inference_at_full_size_gives_more_than_one_number():
    """Those of the untrained network all round to 0, if its statistics are left as they begin."""
    from torchbenchmark.models.mobilenet_v2_quantized_qat import Model

    assert len(Model(test="eval", device="cpu").invoke()[0].unique()) > 20


@every_network
@pytest.mark.parametrize("test", ["train", "eval"])
def test_what_torch_says_of_its_quantization_is_not_said_by_each_process(name, test):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quantized(name, test).invoke()


@every_network
def test_there_is_no_inference_on_a_gpu(name):
    with pytest.raises(NotImplementedError, match="no inference on cuda: torch's int8 kernels are the CPU's"):
        quantized(name, "eval", device="cuda")


@pytest.mark.parametrize("missing", ["torch.ao.quantization", "torch.ao.quantization.quantize_fx"])
def test_a_build_without_the_graph_mode_is_told_as_that(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(NotImplementedError, match="this build of torch has no FX graph mode quantization"):
        quantized("resnet50", "train")


def test_a_build_without_int8_kernels_is_told_as_that(monkeypatch):
    monkeypatch.setattr("torch.backends.quantized", type("Backend", (), {"engine": "none"}))
    with pytest.raises(NotImplementedError, match="this build of torch has no int8 kernels"):
        quantized("resnet50", "eval")
