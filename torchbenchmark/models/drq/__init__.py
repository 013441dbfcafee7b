"""drq: soft actor-critic from pictures, regularised by random shifts of them (Kostrikov et al. 2020)."""

import copy
import math

import torch
from torch.nn import functional

from torchbenchmark.families.soft_actor_critic import ReplayBatch, SoftActorCritic, take_step
from torchbenchmark.families.squashed_normal import sample_action
from torchbenchmark.model import Preset
from torchbenchmark.models.drq.networks import Actor, TwinCritics, build_convolutions, build_summary
from torchbenchmark.models.drq.random_shift import RandomShift
from torchbenchmark.models.drq.track import ACTION, CHANNELS, Track, build_track, random_state

LEARNING_RATE = 1e-3
DISCOUNT = 0.99
INITIAL_TEMPERATURE = 0.1
VIEWS = 2  # shifted versions of an observation, and of the one that follows it: the paper's M and K


class Model(SoftActorCritic):
    """train: one whole update (critics, actor, temperature, target critics) on a fixed replay batch, newly shifted.
    eval: the actor's mean action for a batch of observations and the step of the task under it, from the same state
    every time.

    Training is three dependent updates, so there is no staged trio: `train()` is the only way to train. `get_module`,
    `set_module`, `get_optimizer` and `set_optimizer` speak of the actor, whose convolutions are the critics' and are
    trained by the critics' optimizer. A test="eval" instance has the actor alone.
    """

    TARGET_RATE = 0.01
    TARGET_ENTROPY = -float(ACTION)
    PRESETS = {
        "full": Preset(
            train_batch=128, eval_batch=1, shape={"side": 84, "filters": 32, "features": 50, "hidden": 1024}
        ),
        "tiny": Preset(train_batch=8, eval_batch=128, shape={"side": 28, "filters": 8, "features": 16, "hidden": 64}),
    }

    def setup(self) -> None:
        side, filters, features, hidden = (self.shape[key] for key in ("side", "filters", "features", "hidden"))
        with torch.device(self.device):
            convolutions = build_convolutions(CHANNELS, filters)
            self.module = self.actor = Actor(convolutions, build_summary(filters, side, features), hidden, ACTION)
            self.track = build_track(side, self.device)
            self.state = random_state(self.batch_size, self.device)
            self.example_inputs = (self.track.first_observation(self.state),)
            if self.test == "train":
                self.replay = replay_batch(self.track, self.state, *self.example_inputs)
                self.critics = TwinCritics(convolutions, build_summary(filters, side, features), hidden, ACTION)
                self.shift = RandomShift(self.batch_size, CHANNELS, side)
                self.log_temperature = torch.full((), math.log(INITIAL_TEMPERATURE)).requires_grad_()
        if self.test == "train":
            self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
            self.optimizer = torch.optim.Adam(self.actor.own_parameters(), lr=LEARNING_RATE)
            self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=LEARNING_RATE)
            self.temperature_optimizer = torch.optim.Adam([self.log_temperature], lr=LEARNING_RATE)

    def update(self) -> torch.Tensor:
        views = [self.shift(self.replay.observation) for _ in range(VIEWS)]
        critic_loss = self.update_critics(views)
        actor_loss, log_probability = self.update_actor(views[0])
        temperature_loss = self.update_temperature(log_probability)
        self.update_target_critics()
        return critic_loss + actor_loss + temperature_loss

    def eval(self) -> tuple[torch.Tensor, ...]:
        """The observation after the step, and its reward."""
        mean, _ = self.call_module()
        _, observation, reward = self.track.step(self.state, *self.example_inputs, mean.tanh())
        return observation, reward

    def update_critics(self, views: list[torch.Tensor]) -> torch.Tensor:
        """Both critics, in every view, towards the soft Bellman target averaged over views of what follows."""
        target = self.soft_target()
        losses = []
        for view in views:
            first, second = self.critics(view, self.replay.action)
            losses += [functional.mse_loss(first, target), functional.mse_loss(second, target)]
        loss = torch.stack(losses).sum()
        return take_step(self.critic_optimizer, loss)

    @torch.no_grad()
    def soft_target(self) -> torch.Tensor:
        replay = self.replay
        values = []
        for _ in range(VIEWS):
            view = self.shift(replay.next_observation)
            action, log_probability = sample_action(*self.module(view))
            value = torch.minimum(*self.target_critics(view, action))
            values.append(value - self.log_temperature.exp() * log_probability)
        return replay.reward + DISCOUNT * replay.goes_on * torch.stack(values).mean(dim=0)

    def update_actor(self, view: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The actor towards actions of high value and entropy; also the log-probability of what it sampled."""
        assert self.optimizer is not None
        action, log_probability = sample_action(*self.module(view))
        value = torch.minimum(*self.critics(view, action))
        loss = (self.log_temperature.exp().detach() * log_probability - value).mean()
        # gradients flow through the critics, but only those of the actor's own weights are kept and computed
        return take_step(self.optimizer, loss, only=self.actor.own_parameters()), log_probability.detach()


def replay_batch(track: Track, state: torch.Tensor, observation: torch.Tensor) -> ReplayBatch:
    """One transition from each state, under a uniformly random action."""
    action = 2 * torch.rand_like(state[:, :1]) - 1
    _, next_observation, reward = track.step(state, observation, action)
    return ReplayBatch(observation, action, reward, next_observation, goes_on=torch.ones_like(reward))
