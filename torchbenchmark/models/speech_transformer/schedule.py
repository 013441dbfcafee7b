"""The learning rate of the transformer: it rises in proportion to the steps, then falls with their square root."""

from typing import Any

import torch


class WarmedUpRate:
    """factor * width^-0.5 * min(step^-0.5, step * warm_up^-1.5), for the optimizer's first step at once and for each
    following one when the one before is done (Vaswani et al. 2017, equation 3)."""

    def __init__(self, optimizer: torch.optim.Optimizer, width: int, warm_up: int, factor: float) -> None:
        self.scale = factor * width**-0.5
        self.warm_up = warm_up
        self.step = 1
        self.set_rate(optimizer)
        optimizer.register_step_post_hook(self.advance)

    def rate(self) -> float:
        return self.scale * min(self.step**-0.5, self.step * self.warm_up**-1.5)

    def advance(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self.step += 1
        self.set_rate(optimizer)

    def set_rate(self, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.rate()
