"""What the models of timm do beside the library: the networks of the size head, and ResNeSt on one image."""

import importlib

import pytest
import torch

from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()
pytest.importorskip("timm", reason="timm is not installed")

PARAMETERS_OF_HEAD = {  # EfficientNet-B0, RegNetY-12GF; the others are those of V1
    "timm_efficientnet": 5_288_548,
    "timm_nfnet": 71_489_284,
    "timm_regnet": 51_822_544,
    "timm_resnest": 10_611_688,
    "timm_vision_transformer": 22_050_664,
    "timm_vovnet": 22_600_296,
}


def build(name, test="train", **options):
    model = importlib.import_module(f"torchbenchmark.models.{name}").Model
    return model(**{"test": test, "device": "cpu", "preset": "tiny"} | options)


@pytest.mark.parametrize("name", PARAMETERS_OF_HEAD)
def test_the_size_head_has_the_published_number_of_parameters(name):
    module, _ = build(name, "eval", device="meta", preset="head").get_module()
    assert sum(parameter.numel() for parameter in module.parameters()) == PARAMETERS_OF_HEAD[name]


@pytest.mark.parametrize("batch_size", [1, 2])
def test_resnest_normalizes_the_mean_of_one_image_by_running_statistics_and_that_of_two_by_their_own(batch_size):
    model = build("timm_resnest", batch_size=batch_size)
    norms = [layer for key, layer in model.module.named_modules() if key.endswith("conv2.bn1")]
    assert len(norms) == 4
    before = [norm.running_mean.clone() for norm in norms]
    assert model.invoke()[0].isfinite()
    moved = [not torch.equal(was, norm.running_mean) for was, norm in zip(before, norms, strict=True)]
    assert set(moved) == {batch_size > 1}


def test_resnest_with_running_statistics_infers_as_without():
    one, two = (build("timm_resnest", batch_size=batch_size) for batch_size in (1, 2))
    assert one.module.state_dict().keys() == two.module.state_dict().keys()
    one.module.load_state_dict(two.module.state_dict())
    (images,) = two.example_inputs
    with torch.no_grad():
        torch.testing.assert_close(one.module.eval()(images), two.module.eval()(images))
