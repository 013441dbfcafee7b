"""What is special to DrQ: random shifts, targets and losses over several views, shared convolutions, its own task."""

import copy
import math

import pytest
import torch
from torch.nn import functional

from torchbenchmark.families.squashed_normal import sample_action
from torchbenchmark.models.drq import DISCOUNT, Model
from torchbenchmark.models.drq.random_shift import RandomShift
from torchbenchmark.models.drq.track import build_track


@pytest.fixture
def model():
    return Model(test="train", device="cpu", preset="tiny")


def snapshot(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


def shifted_naively(picture, down, right):
    """Pixel by pixel: what lies beyond an edge is the pixel at the edge."""
    _, height, width = picture.shape
    shifted = torch.empty_like(picture)
    for row in range(height):
        for column in range(width):
            source = min(max(row + down, 0), height - 1), min(max(column + right, 0), width - 1)
            shifted[:, row, column] = picture[:, source[0], source[1]]
    return shifted


def test_each_picture_is_cut_at_its_own_offsets_in_all_its_channels():
    pictures = torch.rand(5, 3, 7, 7)
    offsets = torch.tensor([[0, 8, 4, 1, 6], [0, 8, 4, 7, 3]])
    cut = RandomShift(5, 3, 7).cut(pictures, offsets)
    for index, (row, column) in enumerate(offsets.t().tolist()):
        assert torch.equal(cut[index], shifted_naively(pictures[index], row - 4, column - 4))
    assert torch.equal(cut[2], pictures[2])


def test_shifts_go_up_to_four_pixels_each_way_and_all_are_equally_likely():
    torch.manual_seed(0)
    offsets = RandomShift(9000, 1, 7).draw_offsets()
    for direction in offsets:
        counts = direction.bincount()
        assert len(counts) == 9
        assert (counts - 1000).abs().max() < 5 * math.sqrt(1000)
    assert (offsets[0] == offsets[1]).float().mean().item() == pytest.approx(1 / 9, abs=0.02)


def test_every_iteration_shifts_anew_each_observation_and_each_that_follows(model):
    cuts = []
    cut = model.shift.cut

    def note(pictures, offsets):
        cuts.append((pictures, offsets))
        return cut(pictures, offsets)

    model.shift.cut = note
    model.invoke()
    model.invoke()
    seen = [pictures is model.replay.observation for pictures, _ in cuts]
    assert seen == [True, True, False, False] * 2
    assert all(pictures is model.replay.next_observation for pictures, _ in cuts[2:4])
    assert len({tuple(offsets.flatten().tolist()) for _, offsets in cuts}) == 8


def test_critics_learn_the_mean_target_of_two_views_in_two_views(model):
    replay, views = model.replay, [model.replay.observation, model.replay.observation.flip(3)]
    torch.manual_seed(4)
    values = []
    with torch.no_grad():
        for _ in range(2):
            view = model.shift(replay.next_observation)
            action, log_probability = sample_action(*model.module(view))
            first, second = model.target_critics(view, action)
            values.append(torch.minimum(first, second) - 0.1 * log_probability)
        target = replay.reward + DISCOUNT * (values[0] + values[1]) / 2
        expected = sum(
            functional.mse_loss(value, target) for view in views for value in model.critics(view, replay.action)
        )
    torch.manual_seed(4)
    torch.testing.assert_close(model.update_critics(views), expected)


def test_actor_and_critics_share_the_convolutions_and_the_target_has_its_own(model):
    assert model.actor.convolutions is model.critics.convolutions
    assert model.actor.summary is not model.critics.summary
    online = {id(parameter) for parameter in [*model.actor.parameters(), *model.critics.parameters()]}
    assert online.isdisjoint({id(parameter) for parameter in model.target_critics.parameters()})


def test_the_critics_train_the_convolutions_and_the_actor_does_not(model):
    before = snapshot(model.actor.convolutions)
    model.update_actor(model.replay.observation)
    assert all(
        torch.equal(was, now) and now.grad is None
        for was, now in zip(before, model.actor.convolutions.parameters(), strict=True)
    )
    assert all(parameter.grad is None for parameter in model.critics.parameters())
    model.update_critics([model.replay.observation])
    assert all(
        not torch.equal(was, now) for was, now in zip(before, model.actor.convolutions.parameters(), strict=True)
    )


def test_each_trained_weight_belongs_to_one_optimizer(model):
    optimizers = (model.optimizer, model.critic_optimizer, model.temperature_optimizer)
    held = [id(weight) for optimizer in optimizers for group in optimizer.param_groups for weight in group["params"]]
    trained = [*model.actor.parameters(), *model.critics.parameters(), model.log_temperature]
    assert len(held) == len(set(held))
    assert set(held) == {id(weight) for weight in trained}


def test_one_step_updates_everything_and_every_optimizer_steps_once(model):
    before = [*snapshot(model.actor), *snapshot(model.critics), model.log_temperature.detach().clone()]
    for _ in range(3):
        model.invoke()
    after = [*model.actor.parameters(), *model.critics.parameters(), model.log_temperature]
    assert all(not torch.equal(was, now) for was, now in zip(before, after, strict=True))
    for optimizer in (model.optimizer, model.critic_optimizer, model.temperature_optimizer):
        assert {int(state["step"]) for state in optimizer.state.values()} == {3}
        assert {group["lr"] for group in optimizer.param_groups} == {1e-3}


def test_one_step_moves_the_target_critics_by_tau_towards_the_critics(model):
    with torch.no_grad():  # far away, for the distance after one small step would be lost in rounding
        for target in model.target_critics.parameters():
            target.add_(1.0)
    before = snapshot(model.target_critics)
    model.invoke()
    for was, target, online in zip(before, model.target_critics.parameters(), model.critics.parameters(), strict=True):
        torch.testing.assert_close(target - was, Model.TARGET_RATE * (online - was), rtol=1e-3, atol=1e-6)
        assert target.grad is None


def test_the_actor_learns_actions_of_higher_value(model):
    model.critics.forward = lambda view, action: (action, action + 1)  # the more to the right, the better
    with torch.no_grad():
        model.log_temperature.fill_(-20.0)
    before, _ = model.module(model.replay.observation)
    for _ in range(10):
        model.update_actor(model.replay.observation)
    after, _ = model.module(model.replay.observation)
    assert (after > before).all()


def test_the_temperature_falls_while_the_policy_is_more_random_than_wanted(model):
    before = model.log_temperature.item()
    model.update_temperature(torch.full((4, 1), -5.0))  # entropy 5, wanted -1
    assert model.log_temperature.item() < before


def test_there_is_no_staged_training(model):
    with pytest.raises(NotImplementedError, match=r"call train\(\)"):
        model.forward()


def test_an_inference_is_the_mean_action_and_one_step_of_the_task():
    model = Model(test="eval", device="cpu", preset="tiny", batch_size=3)
    observation, reward = model.invoke()
    with torch.no_grad():
        mean, _ = model.module(*model.example_inputs)
        state, expected, _ = model.track.step(model.state, *model.example_inputs, torch.tanh(mean))
    assert torch.equal(observation, expected)
    torch.testing.assert_close(reward, 1 - state[:, :1].square())
    assert not hasattr(model, "critics") and not hasattr(model, "replay")


def test_pictures_of_an_observation_move_up_and_the_newest_comes_last():
    track = build_track(28, "cpu")
    state = torch.tensor([[0.0, 0.5]])
    first = track.first_observation(state)
    assert all(torch.equal(first[:, index : index + 3], track.picture(state)) for index in (0, 3, 6))
    state, second, _ = track.step(state, first, torch.ones(1, 1))
    assert torch.equal(second[:, :6], first[:, 3:])
    assert torch.equal(second[:, 6:], track.picture(state))


def test_a_picture_is_brightest_where_the_ball_is():
    track = build_track(21, "cpu")
    ((red, green, blue),) = track.picture(torch.tensor([[0.5, 3.0]]))
    assert divmod(red.argmax().item(), 21) == (10, 15)
    assert red.max().item() == pytest.approx(255.0)
    assert green.max().item() == pytest.approx(0.6 * 255) and blue.max().item() == pytest.approx(0.2 * 255)
    assert red[10, 0] < 1 and red[0, 15] < 1
    assert red[10, 14].item() == pytest.approx(255 * math.exp(-0.5 * (0.1 / 0.15) ** 2), rel=1e-4)


def test_a_ball_follows_push_and_friction_and_stops_at_the_end_of_the_track():
    track = build_track(14, "cpu")
    state = torch.tensor([[0.2, -0.5], [0.95, 4.0]])
    after, _, reward = track.step(state, track.first_observation(state), torch.tensor([[0.5], [7.0]]))
    speed = -0.5 + 0.1 * (2 * 0.5 + 0.2 * 0.5)
    assert after[0].tolist() == pytest.approx([0.2 + 0.1 * speed, speed], rel=1e-5)
    assert after[1].tolist() == pytest.approx([1.0, 4.0 + 0.1 * (2 - 0.8)], rel=1e-5)
    assert reward.flatten().tolist() == pytest.approx([1 - (0.2 + 0.1 * speed) ** 2, 0.0], abs=1e-6)


def test_the_actor_divides_convolves_and_summarises_before_it_decides(model):
    """Layer by layer, in double precision."""
    actor = copy.deepcopy(model.actor).double()
    observation = model.replay.observation.double()
    seen = observation / 255
    for layer in actor.convolutions[::2]:
        seen = functional.conv2d(seen, layer.weight, layer.bias, layer.stride).clamp(min=0)
    linear, scale = actor.summary[1], actor.summary[2]
    raw = seen.flatten(1) @ linear.weight.t() + linear.bias
    centred = raw - raw.mean(dim=1, keepdim=True)
    normal = centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    features = (normal * scale.weight + scale.bias).tanh()
    mean, log_deviation = actor(observation)
    out = actor.policy(features)
    torch.testing.assert_close(mean, out[:, :1])
    torch.testing.assert_close(log_deviation, -10 + 6 * (out[:, 1:].tanh() + 1))
