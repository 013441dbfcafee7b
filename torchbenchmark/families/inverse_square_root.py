"""The learning rate of the Transformer (Vaswani et al. 2017): it rises in a line over the warm-up, then falls with the
inverse square root of the step."""

from typing import Any

import torch


def inverse_square_root(step: int, warm_up: int) -> float:
    """The rate of a step, the first being 1, as a multiple of the peak's times the square root of the warm-up."""
    return min(step**-0.5, step * warm_up**-1.5)


def follow_inverse_square_root(optimizer: torch.optim.Optimizer, warm_up: int) -> None:
    """After each step of `optimizer` set its rates for the next: they were built for the first.

    The rates are numbers of Python, so the device has nothing to copy. They are multiplied, not replaced: what somebody
    else has done to a rate stays.
    """
    step = 1

    def advance(stepped: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal step
        change = inverse_square_root(step + 1, warm_up) / inverse_square_root(step, warm_up)
        for group in stepped.param_groups:
            group["lr"] *= change
        step += 1

    optimizer.register_step_post_hook(advance)
