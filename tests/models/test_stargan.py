"""What is special to StarGAN: a critic with a penalty and a second head, several of its steps for one of the generator,
and attributes that are there and back again."""

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from torchbenchmark.models.pytorch_stargan import Model, attribute_loss
from torchbenchmark.models.pytorch_stargan.gradient_penalty import gradient_penalty
from torchbenchmark.models.pytorch_stargan.networks import Discriminator, Generator


@pytest.fixture
def model():
    return Model(test="train", device="cpu", preset="tiny")


def snapshot(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


def steep_critic(images):
    """A critic whose gradient has the norm 3 everywhere; no attributes."""
    return 3 * images.flatten(1)[:, :1], None


def test_the_networks_have_the_published_numbers_of_parameters():
    model = Model(test="train", device="meta", preset="full")
    sizes = [sum(part.numel() for part in network.parameters()) for network in (model.module, model.discriminator)]
    assert sizes == [8_430_528, 44_762_048]


def test_at_full_size_a_period_is_five_steps_of_the_critic_and_one_of_the_generator(model):
    assert Model.PRESETS["full"].shape["critic_steps"] == 5
    model.shape = {**model.shape, "critic_steps": 5}
    for period in (1, 2):
        model.invoke()
        assert {int(state["step"]) for state in model.optimizer.state.values()} == {period}
        assert {int(state["step"]) for state in model.discriminator_optimizer.state.values()} == {5 * period}


def test_one_iteration_changes_every_parameter_of_both_networks(model):
    before = [*snapshot(model.module), *snapshot(model.discriminator)]
    model.invoke()
    after = [*model.module.parameters(), *model.discriminator.parameters()]
    assert all(not torch.equal(was, now) for was, now in zip(before, after, strict=True))


def test_each_step_leaves_the_other_network_alone(model):
    generator = snapshot(model.module)
    model.update_discriminator()
    assert all(parameter.grad is None for parameter in model.module.parameters())
    assert all(torch.equal(was, now) for was, now in zip(generator, model.module.parameters(), strict=True))
    critic = snapshot(model.discriminator)
    gradients = [parameter.grad.clone() for parameter in model.discriminator.parameters()]
    model.update_generator()
    for was, gradient, now in zip(critic, gradients, model.discriminator.parameters(), strict=True):
        assert torch.equal(was, now) and torch.equal(gradient, now.grad)


def test_the_critics_step_follows_the_gradient_of_the_published_loss(model):
    images, wanted = model.example_inputs
    critic = model.discriminator
    with torch.no_grad():
        made = model.module(images, wanted)
    torch.manual_seed(3)
    share = torch.rand(len(images), 1, 1, 1)
    between = (share * images + (1 - share) * made).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between)[0].sum(), between, create_graph=True)
    penalty = ((slope.square().sum(dim=(1, 2, 3)).sqrt() - 1) ** 2).mean()
    scores, logits = critic(images)
    entropy = -(model.own_attributes * functional.logsigmoid(logits)).sum() / len(images)
    entropy = entropy - ((1 - model.own_attributes) * functional.logsigmoid(-logits)).sum() / len(images)
    loss = critic(made)[0].mean() - scores.mean() + entropy + 10 * penalty
    expected = torch.autograd.grad(loss, list(critic.parameters()))
    torch.manual_seed(3)
    torch.testing.assert_close(model.update_discriminator(), loss.detach())
    for gradient, parameter in zip(expected, critic.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-6)


def test_the_generators_step_asks_for_the_wanted_attributes_and_back_for_its_own(model):
    asked = []
    model.module.register_forward_pre_hook(lambda module, arguments: asked.append(arguments))
    images, wanted = model.example_inputs
    with torch.no_grad():
        made = model.module(images, wanted)
        back = model.module(made, model.own_attributes)
        scores, logits = model.discriminator(made)
        expected = -scores.mean() + attribute_loss(logits, wanted) + 10 * (back - images).abs().mean()
    asked.clear()
    torch.testing.assert_close(model.update_generator(), expected)
    (first, one), (second, other) = asked
    assert torch.equal(first, images) and torch.equal(one, wanted)
    assert torch.equal(second, made) and torch.equal(other, model.own_attributes)


def test_the_penalty_is_the_squared_distance_of_the_slope_from_one():
    real, made = torch.rand(4, 3, 2, 2), torch.rand(4, 3, 2, 2)
    assert gradient_penalty(steep_critic, real, made).item() == pytest.approx((3 - 1) ** 2)


def test_the_penalty_is_taken_between_the_real_and_the_made_image_at_one_share_of_all_pixels():
    seen = []

    def critic(images):
        seen.append(images.detach())
        return images.flatten(1).sum(dim=1, keepdim=True), None

    gradient_penalty(critic, torch.zeros(64, 3, 2, 2), torch.ones(64, 3, 2, 2))
    (between,) = seen
    shares = between.flatten(1)
    assert torch.equal(shares, shares[:, :1].expand_as(shares))
    assert 0 <= shares.min() < 0.1 and 0.9 < shares.max() <= 1


def test_the_operations_of_an_iteration_can_be_counted(model):
    with FlopCounterMode(display=False) as counter:
        model.invoke()
    assert counter.get_total_flops() > 0


def test_the_critic_learns_to_score_real_images_higher_while_the_generator_stands_still(model):
    images, wanted = model.example_inputs
    with torch.no_grad():
        made = model.module(images, wanted)
    for group in model.discriminator_optimizer.param_groups:
        group["lr"] = 1e-3
    for _ in range(30):
        model.update_discriminator()
    with torch.no_grad():
        assert model.discriminator(images)[0].mean() > model.discriminator(made)[0].mean() + 0.1


def test_attributes_reach_every_pixel_of_the_made_image():
    generator = Generator(attributes=2, width=4, blocks=1)
    images, attributes = torch.rand(1, 3, 8, 8), torch.tensor([[0.0, 1.0]])
    changed = generator(images, 1 - attributes) - generator(images, attributes)
    assert (changed.abs().amax(dim=1) > 0).all()


def test_the_critic_gives_a_map_of_scores_and_a_logit_for_each_attribute():
    critic = Discriminator(image=32, attributes=5, width=4, halvings=3)
    scores, logits = critic(torch.rand(2, 3, 32, 32))
    assert scores.shape == (2, 1, 4, 4)
    assert logits.shape == (2, 5)
