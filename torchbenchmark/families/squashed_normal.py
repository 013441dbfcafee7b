"""What actors of soft actor-critic draw their actions from: a normal distribution squashed into (-1, 1)."""

import math

import torch
from torch.nn import functional


def sample_action(mean: torch.Tensor, log_deviation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A sample of tanh(Normal(mean, exp(log_deviation))) by reparametrisation, and its log-density, [batch, 1] each.

    Written out because torch.distributions checks its arguments, which makes the host wait for the device. The change
    of variables uses log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)), which does not underflow for large x.
    """
    noise = torch.randn_like(mean)
    raw = mean + log_deviation.exp() * noise
    normal = -0.5 * noise.square() - log_deviation - 0.5 * math.log(2 * math.pi)
    squashing = 2 * (math.log(2) - raw - functional.softplus(-2 * raw))
    return raw.tanh(), (normal - squashing).sum(dim=-1, keepdim=True)
