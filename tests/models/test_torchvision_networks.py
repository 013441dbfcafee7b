"""The networks written in plain torch compute what torchvision's do, given the same weights."""

import importlib

import pytest
import torch
from torch import nn

from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()
torchvision_models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")


@pytest.fixture(scope="module", params=["resnet18", "resnet50", "mobilenet_v2"])
def networks(request):
    """Ours and torchvision's with the same random weights and statistics: the layers have other names there, but stand
    in the same order."""
    module = importlib.import_module(f"torchbenchmark.models.{request.param}")
    ours = module.Model(test="eval", device="cpu").get_module()[0]
    theirs = getattr(torchvision_models, request.param)(weights=None)
    for layer in theirs.modules():
        if isinstance(layer, nn.BatchNorm2d):  # as it begins, it does nothing to an inference
            for tensor in (layer.weight, layer.running_var):
                nn.init.uniform_(tensor, 0.5, 1.5)
            for tensor in (layer.bias, layer.running_mean):
                nn.init.normal_(tensor, std=0.1)
    ours_state, theirs_state = ours.state_dict(), theirs.state_dict()
    assert [tensor.shape for tensor in ours_state.values()] == [tensor.shape for tensor in theirs_state.values()]
    ours.load_state_dict(dict(zip(ours_state, theirs_state.values(), strict=True)))
    return ours, theirs


def test_an_inference_gives_the_output_of_torchvision(networks):
    ours, theirs = (network.eval() for network in networks)
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images))


def test_a_training_pass_gives_the_output_and_the_gradients_of_torchvision(networks):
    images = torch.randn(2, 3, 64, 64)
    outputs, gradients = [], []
    for network in networks:
        torch.manual_seed(0)  # for the dropout
        output = network.train()(images)
        output.square().mean().backward()
        outputs.append(output)
        gradients.append([parameter.grad for parameter in network.parameters()])
    torch.testing.assert_close(*outputs)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
