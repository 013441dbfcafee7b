"""soft_actor_critic: SAC with a learned temperature (Haarnoja et al. 2018) on the pendulum swing-up task."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.soft_actor_critic import ReplayBatch, SoftActorCritic, take_step
from torchbenchmark.families.squashed_normal import sample_action
from torchbenchmark.model import Preset
from torchbenchmark.models.soft_actor_critic import pendulum

OBSERVATION, ACTION = 3, 1
LEARNING_RATE = 1e-4
DISCOUNT = 0.99
INITIAL_TEMPERATURE = 0.1
EPISODE_STEPS = 10
LOG_DEVIATION_RANGE = (-10.0, 2.0)


class Model(SoftActorCritic):
    """train: one whole update (critics, actor, temperature, target critics) on a fixed replay batch.
    eval: ten steps of a batch of pendulums under the actor's mean action, from the same state every time.

    Training is three dependent updates, so there is no staged trio: `train()` is the only way to train. `get_module`,
    `set_module`, `get_optimizer` and `set_optimizer` speak of the actor; the critics stay as they are. A test="eval"
    instance has the actor alone.
    """

    TARGET_RATE = 0.005
    TARGET_ENTROPY = -float(ACTION)
    PRESETS = {
        "full": Preset(train_batch=512, eval_batch=1, shape={"hidden": 1024}),
        "tiny": Preset(train_batch=64, eval_batch=64, shape={"hidden": 128}),
    }

    def setup(self) -> None:
        hidden = self.shape["hidden"]
        with torch.device(self.device):
            self.module = Actor(hidden)
            self.state = pendulum.random_state(self.batch_size, self.device)
            self.example_inputs = (pendulum.observe(self.state),)
            if self.test == "train":
                self.critics = TwinCritics(hidden)
                self.log_temperature = torch.full((), math.log(INITIAL_TEMPERATURE)).requires_grad_()
                self.replay = replay_batch(self.state)
        if self.test == "train":
            self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)
            self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=LEARNING_RATE)
            self.temperature_optimizer = torch.optim.Adam([self.log_temperature], lr=LEARNING_RATE)

    def update(self) -> torch.Tensor:
        critic_loss = self.update_critics()
        actor_loss, log_probability = self.update_actor()
        temperature_loss = self.update_temperature(log_probability)
        self.update_target_critics()
        return critic_loss + actor_loss + temperature_loss

    def eval(self) -> tuple[torch.Tensor, ...]:
        """The observations after the episode and its summed reward, one row per pendulum."""
        state = self.state
        total = torch.zeros_like(state[:, :1])
        for _ in range(EPISODE_STEPS):
            mean, _ = self.module(pendulum.observe(state))
            state, reward = pendulum.step(state, mean.tanh())
            total = total + reward
        return pendulum.observe(state), total

    def update_critics(self) -> torch.Tensor:
        """Both critics towards the soft Bellman target."""
        replay = self.replay
        with torch.no_grad():
            action, log_probability = sample_action(*self.module(replay.next_observation))
            value = torch.minimum(*self.target_critics(replay.next_observation, action))
            soft_value = value - self.log_temperature.exp() * log_probability
            target = replay.reward + DISCOUNT * replay.goes_on * soft_value
        first, second = self.critics(replay.observation, replay.action)
        loss = functional.mse_loss(first, target) + functional.mse_loss(second, target)
        return take_step(self.critic_optimizer, loss)

    def update_actor(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The actor towards actions of high value and entropy; also the log-probability of what it sampled."""
        assert self.optimizer is not None
        action, log_probability = sample_action(*self.module(self.replay.observation))
        value = torch.minimum(*self.critics(self.replay.observation, action))
        loss = (self.log_temperature.exp().detach() * log_probability - value).mean()
        # gradients flow through the critics, but only the actor's are kept and computed
        return take_step(self.optimizer, loss, only=list(self.module.parameters())), log_probability.detach()


class Actor(nn.Module):
    """From observations to mean and log standard deviation of the action before squashing."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.layers = mlp(OBSERVATION, hidden, 2 * ACTION)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, squashed = self.layers(observation).chunk(2, dim=-1)
        low, high = LOG_DEVIATION_RANGE
        return mean, low + 0.5 * (high - low) * (squashed.tanh() + 1)


class TwinCritics(nn.Module):
    """Two independent estimates of the value of an action in a state."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first = mlp(OBSERVATION + ACTION, hidden, 1)
        self.second = mlp(OBSERVATION + ACTION, hidden, 1)

    def forward(self, observation: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat([observation, action], dim=-1)
        return self.first(both), self.second(both)


def replay_batch(state: torch.Tensor) -> ReplayBatch:
    """One transition from each state, under a uniformly random action."""
    action = 2 * torch.rand_like(state[:, :1]) - 1
    next_state, reward = pendulum.step(state, action)
    return ReplayBatch(
        observation=pendulum.observe(state),
        action=action,
        reward=reward,
        next_observation=pendulum.observe(next_state),
        goes_on=torch.ones_like(reward),
    )


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )
