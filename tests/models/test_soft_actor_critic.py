"""What is special to SAC: three optimizers, target critics, a temperature, and its own pendulum."""

import math

import pytest
import torch

from torchbenchmark.models.soft_actor_critic import Model, pendulum, sample_action


@pytest.fixture
def model():
    return Model(test="train", device="cpu", preset="tiny")


def snapshot(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


def test_one_step_updates_actor_both_critics_and_temperature(model):
    before = [*snapshot(model.module), *snapshot(model.critics), model.log_temperature.detach().clone()]
    model.invoke()
    after = [*model.module.parameters(), *model.critics.parameters(), model.log_temperature]
    assert all(not torch.equal(was, now) for was, now in zip(before, after, strict=True))


@pytest.mark.parametrize(("test", "calls"), [("train", 2), ("eval", 10)])
def test_the_actor_acts_twice_in_an_update_and_at_every_step_of_an_episode(test, calls):
    model = Model(test=test, device="cpu", preset="tiny")
    seen = []
    model.get_module()[0].register_forward_hook(lambda *_: seen.append(1))
    model.invoke()
    assert len(seen) == calls


def test_target_critics_begin_as_copies_that_training_does_not_touch(model):
    for target, online in zip(model.target_critics.parameters(), model.critics.parameters(), strict=True):
        assert torch.equal(target, online) and target is not online
        assert not target.requires_grad
    model.invoke()
    assert all(target.grad is None for target in model.target_critics.parameters())


def test_one_step_moves_the_target_critics_by_tau_towards_the_critics(model):
    with torch.no_grad():  # far away, for the distance after one small step would be lost in rounding
        for target in model.target_critics.parameters():
            target.add_(1.0)
    before = snapshot(model.target_critics)
    model.invoke()
    for was, target, online in zip(before, model.target_critics.parameters(), model.critics.parameters(), strict=True):
        torch.testing.assert_close(target - was, Model.TARGET_RATE * (online - was), rtol=1e-3, atol=1e-6)


def test_every_optimizer_steps_once_per_invocation(model):
    for _ in range(3):
        model.invoke()
    for optimizer in (model.optimizer, model.critic_optimizer, model.temperature_optimizer):
        assert {int(state["step"]) for state in optimizer.state.values()} == {3}
        assert {group["lr"] for group in optimizer.param_groups} == {1e-4}


def test_the_actor_update_leaves_the_critics_gradients_alone(model):
    model.update_critics()
    before = [parameter.grad.clone() for parameter in model.critics.parameters()]
    model.update_actor()
    after = [parameter.grad for parameter in model.critics.parameters()]
    assert all(torch.equal(was, now) for was, now in zip(before, after, strict=True))


def test_critic_gradients_of_equal_updates_are_not_piled_up(model):
    for group in model.critic_optimizer.param_groups:
        group["lr"] = 0.0
    seen = []
    for _ in range(2):
        torch.manual_seed(7)
        model.update_critics()
        seen.append([parameter.grad.clone() for parameter in model.critics.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*seen, strict=True))


def test_the_temperature_falls_while_the_policy_is_more_random_than_wanted(model):
    before = model.log_temperature.item()
    model.update_temperature(torch.full((4, 1), -5.0))  # entropy 5, wanted -1
    assert model.log_temperature.item() < before
    before = model.log_temperature.item()
    for _ in range(20):
        model.update_temperature(torch.full((4, 1), 5.0))
    assert model.log_temperature.item() > before


def test_there_is_no_staged_training(model):
    with pytest.raises(NotImplementedError, match=r"call train\(\)"):
        model.forward()


def test_an_inference_instance_has_the_actor_alone():
    model = Model(test="eval", device="cpu", preset="tiny")
    assert not hasattr(model, "critics") and not hasattr(model, "replay")


def test_an_evaluation_is_ten_steps_of_the_mean_action():
    model = Model(test="eval", device="cpu", preset="tiny", batch_size=2)
    observation, total = model.invoke()
    state, rewards = model.state, []
    with torch.no_grad():
        for _ in range(10):
            mean, _ = model.module(pendulum.observe(state))
            state, reward = pendulum.step(state, torch.tanh(mean))
            rewards.append(reward)
    torch.testing.assert_close(observation, pendulum.observe(state))
    torch.testing.assert_close(total, torch.stack(rewards).sum(dim=0))


def test_the_log_probability_is_that_of_a_squashed_normal():
    mean = torch.tensor([[0.3], [-1.2], [0.0]], dtype=torch.float64)
    log_deviation = torch.tensor([[-0.5], [0.4], [-2.0]], dtype=torch.float64)
    action, log_probability = sample_action(mean, log_deviation)
    expected = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(mean, log_deviation.exp()), torch.distributions.TanhTransform()
    ).log_prob(action)
    torch.testing.assert_close(log_probability, expected)


def test_the_log_probability_is_finite_where_the_action_saturates():
    action, log_probability = sample_action(torch.tensor([[40.0], [-40.0]]), torch.tensor([[-10.0], [-10.0]]))
    assert action.abs().max() == 1.0
    assert log_probability.isfinite().all()


def test_an_upright_pendulum_stays_upright_and_earns_nothing_less_than_zero():
    upright = torch.zeros(1, 2)
    state, reward = pendulum.step(upright, torch.zeros(1, 1))
    assert torch.equal(state, upright)
    assert reward.item() == 0.0


def test_a_pendulum_follows_the_equation_of_the_rod():
    angle, speed, share = 0.5, -0.25, 0.75
    state, reward = pendulum.step(torch.tensor([[angle, speed]]), torch.tensor([[share]]))
    torque = 2.0 * share
    new_speed = speed + (3 * 10.0 / 2 * math.sin(angle) + 3 * torque) * 0.05
    assert state[0].tolist() == pytest.approx([angle + new_speed * 0.05, new_speed], rel=1e-5)
    assert reward.item() == pytest.approx(-(angle**2 + 0.1 * speed**2 + 0.001 * torque**2), rel=1e-5)


def test_torque_and_speed_are_limited_and_the_angle_counts_from_upright():
    turns = torch.tensor([[2 * math.pi + 0.1, 8.0]])
    state, reward = pendulum.step(turns, torch.tensor([[50.0]]))
    assert state[0, 1].item() == pendulum.MAX_SPEED
    assert reward.item() == pytest.approx(-(0.1**2 + 0.1 * 64 + 0.001 * 4), rel=1e-4)


def test_observations_are_cosine_sine_and_speed():
    observation = pendulum.observe(torch.tensor([[math.pi / 2, 3.0]]))
    torch.testing.assert_close(observation, torch.tensor([[0.0, 1.0, 3.0]]), atol=1e-6, rtol=0)
