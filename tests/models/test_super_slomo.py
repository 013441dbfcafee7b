"""What is special to Super_SloMo: warping, the motion to the time between, and the four losses of the paper."""

import pytest
import torch
from torch import nn

from torchbenchmark.models.Super_SloMo import Model, random_scenes
from torchbenchmark.models.Super_SloMo.loss import InterpolationLoss, perception_network, roughness
from torchbenchmark.models.Super_SloMo.network import BackwardWarp, SuperSloMo, UNet, intermediate_motion


def fetched(images, motion):
    """Bilinearly and pixel by pixel, black beyond the edge."""
    out = torch.zeros_like(images)
    size = images.shape[-1]
    for item in range(images.shape[0]):
        for row in range(size):
            for column in range(size):
                across, down = column + motion[item, 0, row, column].item(), row + motion[item, 1, row, column].item()
                left, top = int(across // 1), int(down // 1)
                for x, y in ((left, top), (left + 1, top), (left, top + 1), (left + 1, top + 1)):
                    if 0 <= x < size and 0 <= y < size:
                        share = (1 - abs(across - x)) * (1 - abs(down - y))
                        out[item, :, row, column] += share * images[item, :, y, x]
    return out


def test_without_motion_a_warped_image_is_the_image():
    images = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(BackwardWarp(16)(images, torch.zeros(2, 2, 16, 16)), images, rtol=1e-4, atol=1e-5)


def test_a_motion_by_whole_pixels_shifts_the_image_and_lets_black_in():
    images = torch.randn(1, 3, 16, 16, dtype=torch.float64)
    motion = torch.tensor([2.0, -1.0], dtype=torch.float64).view(1, 2, 1, 1).expand(1, 2, 16, 16)
    warped = BackwardWarp(16).double()(images, motion)
    torch.testing.assert_close(warped[..., 1:, :-2], images[..., :-1, 2:], rtol=1e-5, atol=1e-5)
    assert warped[..., 0, :].abs().max() < 1e-5 and warped[..., -2:].abs().max() < 1e-5


def test_a_warp_fetches_bilinearly_from_where_the_motion_points():
    torch.manual_seed(0)
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    motion = 3 * torch.randn(2, 2, 8, 8, dtype=torch.float64)
    warped = BackwardWarp(8).double()(images, motion)
    torch.testing.assert_close(warped, fetched(images, motion), rtol=1e-5, atol=1e-5)


def test_a_steady_motion_is_divided_between_the_frames_in_proportion_to_the_time():
    forth, time = torch.randn(2, 2, 4, 4), torch.tensor([0.25, 0.5]).view(2, 1, 1, 1)
    to_first, to_last = intermediate_motion(forth, -forth, time)
    torch.testing.assert_close(to_first, -time * forth)
    torch.testing.assert_close(to_last, (1 - time) * forth)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return SuperSloMo(image=16, width=4, levels=2)


def silence(unet):
    nn.init.zeros_(unet.end[0].weight)
    nn.init.zeros_(unet.end[0].bias)


def test_without_motion_the_frame_is_the_mean_of_both_weighted_by_the_time(network):
    silence(network.motion)
    silence(network.correction)
    first, last = torch.randn(2, 2, 3, 16, 16)
    time = torch.tensor([0.125, 0.75]).view(2, 1, 1, 1)
    frame, *_ = network(first, last, time)
    torch.testing.assert_close(frame, (1 - time) * first + time * last, rtol=1e-4, atol=1e-4)


def test_what_one_frame_does_not_show_comes_from_the_other(network):
    silence(network.motion)
    silence(network.correction)
    first, last = torch.randn(2, 1, 3, 16, 16)
    for bias, shown in ((2000.0, first), (-2000.0, last)):  # the last activation leaves a tenth of the negative one
        with torch.no_grad():
            network.correction.end[0].bias[4] = bias
        frame, *_ = network(first, last, torch.full((1, 1, 1, 1), 0.5))
        torch.testing.assert_close(frame, shown, rtol=1e-4, atol=1e-4)


def test_the_frame_is_put_together_from_motion_and_correction_as_in_the_paper(network):
    network.double()
    for end in (network.motion.end[0], network.correction.end[0]):
        nn.init.normal_(end.weight)
    first, last = torch.randn(2, 2, 3, 16, 16, dtype=torch.float64)
    t = torch.tensor([0.25, 0.5], dtype=torch.float64).view(2, 1, 1, 1)
    frame, forth, back, rough_first, rough_last = network(first, last, t)

    flows = network.motion(torch.cat([first, last], 1))
    f01, f10 = flows[:, :2], flows[:, 2:]
    ft0, ft1 = -(1 - t) * t * f01 + t**2 * f10, (1 - t) ** 2 * f01 - t * (1 - t) * f10
    g0, g1 = fetched(first, ft0), fetched(last, ft1)
    corrected = network.correction(torch.cat([first, last, f01, f10, ft0, ft1, g0, g1], 1))
    v0 = 1 / (1 + (-corrected[:, 4:]).exp())
    h0, h1 = fetched(first, ft0 + corrected[:, :2]), fetched(last, ft1 + corrected[:, 2:4])
    expected = ((1 - t) * v0 * h0 + t * (1 - v0) * h1) / ((1 - t) * v0 + t * (1 - v0))
    for ours, theirs in zip((frame, forth, back, rough_first, rough_last), (expected, f01, f10, g0, g1), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_u_net_joins_each_level_with_what_it_skipped():
    unet = UNet(6, 4, width=32, levels=5).to("meta")
    shapes = []
    for up in unet.up:
        up.join.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape[1:])))
    assert unet(torch.empty(1, 6, 352, 352, device="meta")).shape == (1, 4, 352, 352)
    assert shapes == [(1024, 22, 22), (512, 44, 44), (256, 88, 88), (128, 176, 176), (64, 352, 352)]


def test_the_loss_is_the_sum_of_four_with_the_weights_of_the_paper():
    torch.manual_seed(0)
    warp = BackwardWarp(16)
    loss = InterpolationLoss(warp, (4, 4, 8, 8))
    first, between, last, frame, rough_first, rough_last = torch.rand(6, 2, 3, 16, 16)
    forth, back = torch.randn(2, 2, 2, 16, 16)

    def mean_difference(one, other):
        return (one - other).abs().mean()

    def perceived(image):
        return loss.perception(image)

    expected = 204 * mean_difference(frame, between)
    expected += 0.005 * (perceived(frame) - perceived(between)).square().mean()
    expected += 102 * (mean_difference(rough_first, between) + mean_difference(rough_last, between))
    expected += 102 * (mean_difference(warp(last, forth), first) + mean_difference(warp(first, back), last))
    for motion in (forth, back):
        expected += (motion[:, :, 1:] - motion[:, :, :-1]).abs().mean()
        expected += (motion[:, :, :, 1:] - motion[:, :, :, :-1]).abs().mean()
    torch.testing.assert_close(loss((frame, forth, back, rough_first, rough_last), first, between, last), expected)


def test_an_even_motion_is_smooth():
    assert roughness(torch.full((1, 2, 8, 8), 3.0)) == 0
    ramp = torch.arange(8.0).expand(1, 2, 8, 8)
    assert roughness(ramp) == roughness(ramp.mT) == 1


def test_the_perceptual_network_is_that_of_vgg16_up_to_the_third_convolution_of_its_fourth_stage():
    """7,635,264 parameters; and no activation behind the last."""
    with torch.device("meta"):
        network = perception_network((64, 128, 256, 512))
    assert sum(parameter.numel() for parameter in network.parameters()) == 7_635_264
    assert isinstance(network[-1], nn.Conv2d)
    assert network(torch.empty(1, 3, 352, 352, device="meta")).shape == (1, 512, 44, 44)


def test_training_leaves_the_perceptual_network_alone_and_shares_the_warp_with_the_network():
    model = Model(test="train", device="cpu", preset="tiny")
    before = [parameter.clone() for parameter in model.loss.perception.parameters()]
    model.invoke()
    for was, now in zip(before, model.loss.perception.parameters(), strict=True):
        assert torch.equal(was, now) and now.grad is None and not now.requires_grad
    assert model.loss.warp is model.module.warp
    assert not hasattr(Model(test="eval", device="cpu", preset="tiny"), "loss")


def test_the_scenes_of_a_batch_are_asked_about_at_the_seven_times_between_in_turn():
    _, (_, _, time) = Model(test="eval", device="cpu", preset="tiny", batch_size=9).get_module()
    assert time.flatten().tolist() == [number / 8 for number in (1, 2, 3, 4, 5, 6, 7, 1, 2)]


def test_a_scene_moves_from_its_first_frame_to_its_last():
    torch.manual_seed(0)
    half, begin, end = (torch.full((1, 1, 1, 1), moment) for moment in (0.5, 0.0, 1.0))
    scenes = []
    for moment in (begin, half, end):
        torch.manual_seed(0)
        scenes.append(random_scenes(moment, 24))
    for first, _, last in scenes:
        assert torch.equal(first, scenes[0][0]) and torch.equal(last, scenes[0][2])
    torch.testing.assert_close(scenes[0][1], scenes[0][0])
    torch.testing.assert_close(scenes[2][1], scenes[2][2])
    assert (scenes[1][1] - scenes[0][0]).abs().mean() > 0.01
