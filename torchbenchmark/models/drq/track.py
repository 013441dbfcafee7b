"""A task to be solved from pictures, many at once, on whatever device their state lies: a ball on a straight track is
pushed left or right and shall come to rest in the middle.

Semi-implicit Euler steps; an observation is the last three colour pictures, the oldest first, from 0 to 255.
"""

from dataclasses import dataclass

import torch

ACTION = 1
COLOUR = (1.0, 0.6, 0.2)  # of the ball, as shares of full red, green and blue
FRAMES = 3
CHANNELS = FRAMES * len(COLOUR)
TIME_STEP = 0.1
MAX_PUSH = 2.0  # acceleration under a full action
FRICTION = 0.2
BALL = 0.15  # radius at which the ball's brightness has fallen to 0.61; the track is 2 long


@dataclass(frozen=True)
class Track:
    """What the pictures are painted with, made once on the device."""

    across: torch.Tensor  # [side]: positions of the columns, from -1 to 1
    ball: torch.Tensor  # [3, side, 1]: how bright the ball is in each row, were it in the column

    def picture(self, state: torch.Tensor) -> torch.Tensor:
        """[balls, 3, side, side]"""
        distance = (self.across - state[:, :1]) / BALL
        return 255 * self.ball * (-0.5 * distance.square()).exp()[:, None, None, :]

    def step(
        self, state: torch.Tensor, observation: torch.Tensor, action: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The next state [balls, 2] (position and speed) and observation, and the reward [balls, 1]."""
        position, speed = state.split(1, dim=1)
        acceleration = MAX_PUSH * action.clamp(-1, 1) - FRICTION * speed
        speed = speed + TIME_STEP * acceleration
        position = (position + TIME_STEP * speed).clamp(-1, 1)
        state = torch.cat([position, speed], dim=1)
        observation = torch.cat([observation[:, len(COLOUR) :], self.picture(state)], dim=1)
        return state, observation, 1 - position.square()

    def first_observation(self, state: torch.Tensor) -> torch.Tensor:
        """[balls, 9, side, side]: the ball has stood still until now."""
        return self.picture(state).repeat(1, FRAMES, 1, 1)


def build_track(side: int, device: str) -> Track:
    across = torch.linspace(-1, 1, side, device=device)
    colour = torch.stack([across.new_full((side, 1), share) for share in COLOUR])
    return Track(across, colour * (-0.5 * (across / BALL).square()).exp()[:, None])


def random_state(balls: int, device: str) -> torch.Tensor:
    """[balls, 2]: anywhere on the track, with a speed between -1 and 1."""
    return 2 * torch.rand(balls, 2, device=device) - 1
