"""Private training: a gradient for each sample, none longer than the clip, and noise as strong as that."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.models.opacus_cifar10 import LONGEST_GRADIENT, NOISE, Model
from torchbenchmark.models.opacus_cifar10.private import clip_and_sum, per_sample_gradients


@pytest.fixture
def model():
    """In double precision: a group of two values, as the smallest here are, is normalized with much rounding."""
    return double_precision()


def double_precision():
    model = Model(test="train", device="cpu", preset="tiny", batch_size=3)
    model.cast(torch.float64)
    return model


def one_by_one(model):
    """The gradients of each sample, from a backward pass of its own."""
    (images,) = model.example_inputs
    parameters = dict(model.module.named_parameters())
    return [
        dict(
            zip(
                parameters,
                torch.autograd.grad(
                    functional.cross_entropy(model.module(images[sample : sample + 1]), model.labels[sample, None]),
                    list(parameters.values()),
                ),
                strict=True,
            )
        )
        for sample in range(len(images))
    ]


def length(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients.values()]).norm()


def test_the_gradients_of_the_samples_are_those_of_samples_taken_one_by_one(model):
    (images,) = model.example_inputs
    parameters = dict(model.module.named_parameters())
    gradients, losses = per_sample_gradients(model.module, parameters, functional.cross_entropy, images, model.labels)
    assert gradients.keys() == parameters.keys()
    for sample, alone in enumerate(one_by_one(model)):
        for name, gradient in alone.items():
            torch.testing.assert_close(gradients[name][sample], gradient, msg=name)
    expected = functional.cross_entropy(model.module(images), model.labels, reduction="none")
    torch.testing.assert_close(losses, expected.detach())


def test_a_long_gradient_is_shortened_over_all_parameters_together_and_a_short_one_kept():
    gradients = {"a": torch.tensor([[3.0, 0.0], [0.3, 0.0]]), "b": torch.tensor([[[4.0]], [[0.4]]])}
    sums = clip_and_sum(gradients, 1.0)
    torch.testing.assert_close(sums["a"], torch.tensor([0.6 + 0.3, 0.0]))
    torch.testing.assert_close(sums["b"], torch.tensor([[0.8 + 0.4]]))
    assert clip_and_sum({"a": torch.zeros(2, 3)}, 1.0)["a"].tolist() == [0.0] * 3


def test_without_noise_a_step_has_the_mean_of_the_clipped_gradients(model, monkeypatch):
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    alone = one_by_one(model)
    assert all(length(gradients) > LONGEST_GRADIENT for gradients in alone)
    model.invoke()
    for name, parameter in model.module.named_parameters():
        clipped = sum(gradients[name] * LONGEST_GRADIENT / (length(gradients) + 1e-6) for gradients in alone)
        torch.testing.assert_close(parameter.grad, clipped / 3, msg=name)


def test_the_noise_on_the_sum_is_as_strong_as_the_longest_gradient(model, monkeypatch):
    torch.manual_seed(3)
    model.invoke()
    noisy = {name: parameter.grad.clone() for name, parameter in model.module.named_parameters()}
    fresh = double_precision()
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    fresh.invoke()
    noise = torch.cat([(noisy[name] - p.grad).flatten() for name, p in fresh.module.named_parameters()]) * 3
    assert noise.std().item() == pytest.approx(NOISE * LONGEST_GRADIENT, rel=0.02)
    assert abs(noise.mean().item()) < 0.02


def test_no_sample_of_the_batch_knows_of_another():
    model = Model(test="eval", device="cpu", preset="tiny", batch_size=4)
    kinds = {type(layer) for layer in model.module.modules()}
    assert nn.GroupNorm in kinds and not {kind for kind in kinds if issubclass(kind, nn.modules.batchnorm._NormBase)}
    (images,) = model.example_inputs
    model.module.train()
    torch.testing.assert_close(model.module(images)[2:3], model.module(images[2:3]))


def test_there_is_no_staged_training(model):
    with pytest.raises(NotImplementedError, match=r"call train\(\)"):
        model.forward()
