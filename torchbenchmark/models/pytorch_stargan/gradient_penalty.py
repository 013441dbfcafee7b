"""What keeps a critic's slope near 1 (Gulrajani et al., Improved Training of Wasserstein GANs, 2017)."""

import torch
from torch import nn


def gradient_penalty(discriminator: nn.Module, real: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    """The mean squared distance from 1 of the norm of the scores' gradient, at one random point between each real image
    and a made one. It has a graph: training differentiates it again."""
    share = torch.rand(len(real), 1, 1, 1, device=real.device, dtype=real.dtype)
    # as a function of the share it is no leaf of the graph: torch's FlopCounterMode cannot follow the gradient of one
    between = made + share.requires_grad_() * (real - made)
    scores, _ = discriminator(between)
    (gradient,) = torch.autograd.grad(scores.sum(), between, create_graph=True)
    return (gradient.flatten(1).norm(dim=1) - 1).square().mean()
