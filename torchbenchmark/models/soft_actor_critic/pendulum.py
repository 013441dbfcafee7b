"""The pendulum swing-up task, many pendulums at once, on whatever device their state lies.

A rod of length 1 and mass 1 hangs from a motor too weak to lift it at once; the angle is 0 when upright. Semi-implicit
Euler steps of the rigid-rod equation, angular acceleration = 3 g sin(angle) / (2 l) + 3 torque / (m l^2).
"""

import math

import torch

GRAVITY = 10.0
TIME_STEP = 0.05
MAX_SPEED = 8.0
MAX_TORQUE = 2.0


def random_state(pendulums: int, device: str) -> torch.Tensor:
    """[pendulums, 2]: any angle, and an angular velocity between -1 and 1."""
    uniform = 2 * torch.rand(pendulums, 2, device=device) - 1
    return torch.cat([math.pi * uniform[:, :1], uniform[:, 1:]], dim=1)


def observe(state: torch.Tensor) -> torch.Tensor:
    """[pendulums, 3]: cosine and sine of the angle, and the angular velocity."""
    angle, speed = state.split(1, dim=1)
    return torch.cat([angle.cos(), angle.sin(), speed], dim=1)


def step(state: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The next state and the reward [pendulums, 1] of `action` [pendulums, 1], a share of the full torque."""
    angle, speed = state.split(1, dim=1)
    torque = MAX_TORQUE * action.clamp(-1, 1)
    from_upright = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
    reward = -(from_upright.square() + 0.1 * speed.square() + 0.001 * torque.square())
    acceleration = 1.5 * GRAVITY * angle.sin() + 3 * torque
    speed = (speed + TIME_STEP * acceleration).clamp(-MAX_SPEED, MAX_SPEED)
    return torch.cat([angle + TIME_STEP * speed, speed], dim=1), reward
