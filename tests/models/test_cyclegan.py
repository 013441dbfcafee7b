"""What is special to CycleGAN: pairs of networks, a game of least squares, cycles, and a pool of made images."""

import pytest
import torch

from torchbenchmark.families.patch_discriminator import PatchDiscriminator, discriminator_loss, distance_to_real
from torchbenchmark.models.pytorch_CycleGAN_and_pix2pix import Generator, Model
from torchbenchmark.models.pytorch_CycleGAN_and_pix2pix.image_pool import KEPT, ImagePool


@pytest.fixture
def model():
    return Model(test="train", device="cpu", preset="tiny")


def parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


def snapshot(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


def test_the_networks_have_the_published_numbers_of_parameters():
    with torch.device("meta"):
        model = Model(test="train", device="meta", preset="full")
    assert [parameters(part) for part in model.discriminators] == [2_764_737] * 2
    assert parameters(model.module) == 2 * 11_378_179


def test_a_score_of_the_discriminator_judges_seventy_pixels_squared():
    judge = PatchDiscriminator(3, 4)
    for layer in judge.layers:
        if isinstance(layer, torch.nn.InstanceNorm2d):
            layer.forward = lambda features: features  # which would let every score see the whole image
    images = torch.zeros(1, 3, 256, 256, requires_grad=True)
    scores = judge(images)
    assert scores.shape == (1, 1, 30, 30)
    scores[0, 0, 15, 15].backward()
    seen = images.grad[0].abs().sum(dim=0).nonzero()
    assert (seen.max(dim=0).values - seen.min(dim=0).values + 1).tolist() == [70, 70]


def test_one_iteration_changes_all_four_networks_and_steps_both_optimizers_once(model):
    networks = [model.module.to_first, model.module.to_second, *model.discriminators]
    before = [snapshot(network) for network in networks]
    model.invoke()
    for network, was in zip(networks, before, strict=True):
        weights = [(old, new) for old, new in zip(was, network.parameters(), strict=True) if new.dim() > 1]
        assert all(not torch.equal(old, new) for old, new in weights)
    for optimizer in (model.optimizer, model.discriminator_optimizer):
        assert {int(state["step"]) for state in optimizer.state.values()} == {1}


def test_the_generators_step_follows_the_gradient_of_the_published_loss(model):
    first, second = model.example_inputs
    to_second, to_first = model.module.to_second, model.module.to_first
    judge_first, judge_second = model.discriminators
    loss = ((judge_second(to_second(first)) - 1) ** 2).mean() + ((judge_first(to_first(second)) - 1) ** 2).mean()
    loss = loss + 10 * (to_first(to_second(first)) - first).abs().mean()
    loss = loss + 10 * (to_second(to_first(second)) - second).abs().mean()
    loss = loss + 5 * (to_first(first) - first).abs().mean() + 5 * (to_second(second) - second).abs().mean()
    expected = torch.autograd.grad(loss, list(model.module.parameters()))
    ours, made = model.update_generators()
    torch.testing.assert_close(ours, loss.detach())
    for gradient, parameter in zip(expected, model.module.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-5)
    assert [image.shape for image in made] == [first.shape, second.shape]
    assert all(parameter.grad is None for parameter in model.discriminators.parameters())


def test_the_discriminators_step_leaves_the_generators_alone(model):
    _, made = model.update_generators()
    before = snapshot(model.module)
    gradients = [parameter.grad.clone() for parameter in model.module.parameters()]
    model.update_discriminators(made)
    for was, gradient, now in zip(before, gradients, model.module.parameters(), strict=True):
        assert torch.equal(was, now) and torch.equal(gradient, now.grad)


def test_discriminators_learn_to_tell_real_from_made_while_the_generators_stand_still(model):
    _, made = model.update_generators()
    losses = torch.stack([model.update_discriminators(made) for _ in range(40)])
    assert losses[-5:].mean() < 0.5 * losses[:5].mean()


def test_the_losses_are_those_of_least_squares():
    real, fake = torch.tensor([0.5, 1.0]), torch.tensor([0.0, 2.0])
    assert discriminator_loss(real, fake).item() == pytest.approx(0.5 * (0.25 / 2 + 4 / 2))
    assert distance_to_real(fake).item() == pytest.approx((1 + 1) / 2)


def test_an_image_of_the_pool_is_given_for_half_of_the_made_ones_and_replaced_by_them():
    pool = ImagePool(-torch.arange(1.0, KEPT + 1).view(KEPT, 1, 1, 1))
    kept = set(pool.images.flatten().tolist())
    torch.manual_seed(0)
    swaps = 0
    for number in range(1, 201):
        (given,) = pool.exchange(torch.full((1, 1, 1, 1), float(number))).flatten().tolist()
        if given != number:
            assert given in kept
            kept = kept - {given} | {float(number)}
            swaps += 1
        assert set(pool.images.flatten().tolist()) == kept
    assert 70 < swaps < 130


def test_several_images_at_once_each_come_back_or_stand_in_the_pool():
    pool = ImagePool(torch.zeros(KEPT, 1, 1, 1))
    made = torch.arange(1.0, 9.0).view(8, 1, 1, 1)
    torch.manual_seed(1)
    given = pool.exchange(made)
    assert given.shape == made.shape
    returned, stored = set(given.flatten().tolist()) - {0.0}, set(pool.images.flatten().tolist()) - {0.0}
    assert returned | stored == set(made.flatten().tolist())


def test_a_generator_keeps_the_size_of_an_image_and_its_colours_between_minus_one_and_one():
    images = Generator(4, 1)(100 * torch.randn(2, 3, 20, 24))
    assert images.shape == (2, 3, 20, 24)
    assert images.abs().max() <= 1
