"""The networks written in plain torch compute what torchvision's do, given the same weights, and begin as they do."""

import importlib

import pytest
import torch
from torch import nn

from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()
torchvision_models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")

# of each the smallest image that leaves every layer something to do
IMAGES = {
    "alexnet": 64,
    "densenet121": 64,
    "mnasnet1_0": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_large": 64,
    "resnet18": 64,
    "resnet50": 64,
    "resnext50_32x4d": 64,
    "shufflenet_v2_x1_0": 64,
    "squeezenet1_1": 64,
    "vgg16": 32,
}
# the hidden layers of AlexNet and VGG: what their gradients are made of is compared in the layers before them
TOO_LARGE_TO_TRAIN = 10_000_000
# the others are built of the same parts, or leave their weights as torch's layers begin
BEGINNINGS = (
    "densenet121",
    "mnasnet1_0",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "resnet18",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
)


def ours_and_theirs(name, device):
    module = importlib.import_module(f"torchbenchmark.models.{name}")
    ours = module.Model(test="eval", device=device).get_module()[0]
    with torch.device(device):
        theirs = getattr(torchvision_models, name)(weights=None)
    return ours, theirs


@pytest.fixture(scope="module", params=IMAGES)
def networks(request):
    """Ours and torchvision's with the same random weights and statistics, and images for them: the layers have other
    names there, but stand in the same order."""
    ours, theirs = ours_and_theirs(request.param, "meta")  # so that no weights are drawn to be thrown away
    theirs.to_empty(device="cpu")
    for layer in theirs.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.normal_(layer.weight, std=layer.weight[0].numel() ** -0.5)
            if layer.bias is not None:
                nn.init.normal_(layer.bias, std=0.1)
        if isinstance(layer, nn.BatchNorm2d):  # as it begins, it does nothing to an inference
            layer.num_batches_tracked.zero_()
            for tensor in (layer.weight, layer.running_var):
                nn.init.uniform_(tensor, 0.5, 1.5)
            for tensor in (layer.bias, layer.running_mean):
                nn.init.normal_(tensor, std=0.1)
    ours_state, theirs_state = ours.state_dict(), theirs.state_dict()
    assert [tensor.shape for tensor in ours_state.values()] == [tensor.shape for tensor in theirs_state.values()]
    given = {
        name: tensor if "weight" in their_name or "bias" in their_name else tensor.clone()
        for name, (their_name, tensor) in zip(ours_state, theirs_state.items(), strict=True)
    }
    ours.load_state_dict(given, assign=True)  # weights are shared, for VGG's are half a gigabyte; statistics are not
    for network in (ours, theirs):
        for parameter in network.parameters():
            parameter.requires_grad_(parameter.numel() < TOO_LARGE_TO_TRAIN)
    return ours, theirs, torch.randn(2, 3, IMAGES[request.param], IMAGES[request.param])


def test_an_inference_gives_the_output_of_torchvision(networks):
    ours, theirs, images = networks
    with torch.no_grad():
        expected = theirs.eval()(images)
        assert expected.std() > 0
        torch.testing.assert_close(ours.eval()(images), expected)


def test_a_training_pass_gives_the_output_the_gradients_and_the_statistics_of_torchvision(networks):
    *both, images = networks
    outputs, gradients = [], []
    for network in both:
        torch.manual_seed(0)  # for the dropout
        output = network.train()(images)
        output.square().mean().backward()
        outputs.append(output)
        gradients.append([parameter.grad for parameter in network.parameters() if parameter.requires_grad])
    torch.testing.assert_close(*outputs)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
    for one, other in zip(*(network.buffers() for network in both), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", BEGINNINGS)
def test_the_weights_begin_as_those_of_torchvision(name):
    """Equal where they are constants; equal in deviation, within what chance leaves, where they are drawn."""
    ours, theirs = ours_and_theirs(name, "cpu")
    for (layer, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if other.std() == 0 or other.numel() < 2:
            assert torch.equal(one, other), layer
        else:
            expected = 5 / one.numel() ** 0.5
            assert one.std().item() == pytest.approx(other.std().item(), rel=expected), layer
            # the largest of uniform numbers is 1.7 deviations, of a hundred normal ones more than 2
            if one.numel() >= 500:
                assert (one.abs().max() > 2 * one.std()) == (other.abs().max() > 2 * other.std()), layer
