"""The two steps that make stochastic gradient descent private (Abadi et al. 2016): a gradient for each sample, and no
sample counting more than another."""

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

TINY = 1e-6  # keeps a gradient of zero from being divided by

Gradients = dict[str, torch.Tensor]


def per_sample_gradients(
    module: nn.Module,
    parameters: Mapping[str, torch.Tensor],
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[Gradients, torch.Tensor]:
    """The gradient of each sample's loss, by parameter, the samples along a new first axis; and the losses, [batch].

    `loss` takes outputs and targets of a batch, which is of one sample here.
    """

    def of_one(weights: Gradients, sample: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        output = functional_call(module, weights, (sample.unsqueeze(0),))
        return loss(output, target.unsqueeze(0))

    detached = {name: parameter.detach() for name, parameter in parameters.items()}
    return vmap(grad_and_value(of_one), in_dims=(None, 0, 0))(detached, inputs, targets)


def clip_and_sum(gradients: Gradients, longest: float) -> Gradients:
    """The sum over samples, each sample's gradient (all parameters together) first shortened to `longest`."""
    lengths = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients.values()]).norm(dim=0)
    shares = (longest / (lengths + TINY)).clamp(max=1.0)
    return {name: torch.einsum("s,s...->...", shares, gradient) for name, gradient in gradients.items()}
