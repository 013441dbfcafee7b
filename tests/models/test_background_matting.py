"""What is special to background matting: a frozen teacher, four sources, masked losses, a critic of compositions."""

import pytest
import torch

from torchbenchmark.models.Background_Matting import Model
from torchbenchmark.models.Background_Matting.matting_losses import (
    SlopeDistance,
    compose,
    masked_distance,
    opacity_loss,
)


@pytest.fixture
def model():
    return Model(test="train", device="cpu", preset="tiny")


def snapshot(module):
    return [tensor.detach().clone() for tensor in module.state_dict().values()]


def changed(module, before):
    return [not torch.equal(was, now) for was, now in zip(before, module.state_dict().values(), strict=True)]


def test_the_discriminator_has_the_published_number_of_parameters():
    model = Model(test="train", device="meta", preset="full")
    assert sum(parameter.numel() for parameter in model.discriminator.parameters()) == 2_764_737
    assert model.discriminator(model.example_inputs[0]).shape == (1, 1, 67, 67)


def test_one_iteration_changes_student_and_discriminator_and_not_the_teacher(model):
    teacher = snapshot(model.teacher)
    discriminator = [
        parameter.detach().clone() for parameter in model.discriminator.parameters() if parameter.dim() > 1
    ]
    student = [parameter.detach().clone() for parameter in model.module.parameters() if parameter.dim() > 1]
    model.invoke()
    assert not any(changed(model.teacher, teacher))
    now = [parameter for parameter in model.discriminator.parameters() if parameter.dim() > 1]
    assert not any(torch.equal(one, other) for one, other in zip(discriminator, now, strict=True))
    now = [parameter for parameter in model.module.parameters() if parameter.dim() > 1]
    assert not any(torch.equal(one, other) for one, other in zip(student, now, strict=True))
    for optimizer in (model.optimizer, model.discriminator_optimizer):
        assert {int(state["step"]) for state in optimizer.state.values()} == {1}


def test_the_teacher_is_another_network_than_the_student_and_infers(model):
    assert not model.teacher.training
    assert not any(parameter.requires_grad for parameter in model.teacher.parameters())
    first, second = next(iter(model.teacher.parameters())), next(iter(model.module.parameters()))
    assert first.shape == second.shape and not torch.equal(first, second)


def test_optimizers_have_the_rates_of_the_paper(model):
    assert [group["lr"] for group in model.optimizer.param_groups] == [1e-4]
    assert [group["lr"] for group in model.discriminator_optimizer.param_groups] == [1e-5]


def test_the_students_step_follows_the_gradient_of_the_published_loss(model):
    picture, background, segmentation, motion = model.example_inputs
    with torch.no_grad():
        teacher_opacity, teacher_colours = model.teacher(picture, background, segmentation, motion)
    opacity, colours = model.module(picture, background, segmentation, motion)

    def distance(one, other, mask):
        return ((one - other).abs() * mask).sum() / mask.sum()

    slopes = 0
    for filter_ in (
        torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]]),
        torch.tensor([[1.0, 2, 1], [0, 0, 0], [-1, -2, -1]]),
    ):
        both = [
            torch.nn.functional.conv2d(alpha, filter_[None, None], padding=1) for alpha in (opacity, teacher_opacity)
        ]
        slopes = slopes + (both[0] - both[1]).abs().mean()
    matte = (opacity - teacher_opacity).abs().mean() + 0.5 * slopes
    share = (opacity + 1) / 2
    explained = distance(share * colours + (1 - share) * background, picture, (segmentation > 0.95).float())
    loss = 0.05 * (matte + distance(colours, teacher_colours, (teacher_opacity > -0.98).float()) + explained)
    opaque = (opacity > 0.95).float()
    mixed = picture * opaque + colours * (1 - opaque)
    columns = (torch.arange(32) - 4) % 32
    share = share[..., columns]
    composition = share * mixed[..., columns] + (1 - share) * model.new_background
    loss = loss + (model.discriminator(composition) - 1).square().mean()
    expected = torch.autograd.grad(loss, list(model.module.parameters()))

    ours, shown = model.update_student()
    torch.testing.assert_close(ours, loss.detach())
    torch.testing.assert_close(shown, composition.detach())
    for gradient, parameter in zip(expected, model.module.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-4)
    assert all(parameter.grad is None for parameter in model.discriminator.parameters())


def test_the_discriminator_learns_to_tell_pictures_from_compositions_while_the_student_stands_still(model):
    _, composition = model.update_student()
    for group in model.discriminator_optimizer.param_groups:
        group["lr"] = 1e-3
    student = snapshot(model.module)
    losses = torch.stack([model.update_discriminator(composition) for _ in range(20)])
    assert losses[-3:].mean() < 0.5 * losses[:3].mean()
    assert not any(changed(model.module, student))


@pytest.mark.parametrize("source", range(4))
def test_every_source_has_a_say_in_opacity_and_foreground(source):
    model = Model(test="eval", device="cpu", preset="tiny")
    before = [output.clone() for output in model.invoke()]
    model.example_inputs[source].neg_()
    for was, now in zip(before, model.invoke(), strict=True):
        assert (was - now).abs().max() > 0


def test_a_foreground_on_its_background_shows_the_share_of_its_opacity():
    opacity = torch.tensor([-1.0, 0.0, 1.0]).view(1, 1, 1, 3)
    composed = compose(opacity, torch.full((1, 3, 1, 3), 0.8), torch.full((1, 3, 1, 3), -0.4))
    torch.testing.assert_close(composed[0, 0, 0], torch.tensor([-0.4, 0.2, 0.8]))


def test_a_masked_distance_is_that_of_the_masked_pixels_of_each_picture():
    images = torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 9.0]]).view(3, 1, 1, 2).expand(3, 3, 1, 2)
    mask = torch.tensor([[True, False], [True, True], [False, False]]).view(3, 1, 1, 2)
    expected = 3 * (1 + (3 + 5) / 2 + 0) / 3
    assert masked_distance(images, torch.zeros(()), mask).item() == pytest.approx(expected)


def test_slopes_are_those_of_sobels_filters():
    ramp = torch.arange(5.0).expand(1, 1, 5, 5)  # a slope of 8 to the right, none downwards
    flat = torch.zeros(1, 1, 5, 5)
    slopes = SlopeDistance()
    assert slopes.slopes(ramp)[0, :, 2, 2].tolist() == [8.0, 0.0]
    assert slopes.slopes(ramp.mT)[0, :, 2, 2].tolist() == [0.0, 8.0]
    both = slopes.slopes(ramp).abs().mean(dim=(0, 2, 3)).sum()
    torch.testing.assert_close(slopes(ramp, flat), both)
    torch.testing.assert_close(opacity_loss(ramp, flat, slopes), ramp.mean() + 0.5 * both)
