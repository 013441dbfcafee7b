"""Reversible residual layers (Gomez et al. 2017): a backward pass recomputes what it needs from the outputs, so that
the activations of one layer alone are held at a time.

Two streams go through each layer: one adds what attention makes of the other, then the other adds what the
feed-forward network makes of the sum. Both can be taken back. What a pass has drawn (dropout) or decided by rounded
numbers (the order of hashed tokens) is kept, so that the second computation is that of the first.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.models.hf_Reformer.attention import ChunkedAttention

DROPOUT = 0.05
KEEP = 1 - DROPOUT

Kept = tuple[torch.Tensor | None, ...]  # what dropout leaves: attention weights, their output, inner and outer features


class ReversibleLayer(nn.Module):
    def __init__(self, attention: ChunkedAttention, width: int, inner: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.attention = attention
        self.inner_norm = nn.LayerNorm(width, eps=1e-12)
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)

    def attend(
        self, states: torch.Tensor, kept: Kept, order: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        output, order = self.attention(self.attention_norm(states), kept[0], order)
        return dropped(output, kept[1]), order

    def attend_in_order(self, states: torch.Tensor, kept: Kept, order: torch.Tensor | None) -> torch.Tensor:
        return self.attend(states, kept, order)[0]

    def transform(self, states: torch.Tensor, kept: Kept) -> torch.Tensor:
        inner = functional.relu(dropped(self.widen(self.inner_norm(states)), kept[2]))
        return dropped(self.narrow(inner), kept[3])

    def draw_kept(self, states: torch.Tensor) -> Kept:
        draws = (
            (self.attention.weights_shape(states), self.attention.keep_weights),
            (states.shape, KEEP),
            ((*states.shape[:-1], self.widen.out_features), KEEP),
            (states.shape, KEEP),
        )
        return tuple(
            torch.empty(shape, dtype=torch.bool, device=states.device).bernoulli_(keep) if keep < 1 else None
            for shape, keep in draws
        )


def dropped(features: torch.Tensor, kept: torch.Tensor | None) -> torch.Tensor:
    return features if kept is None else features * kept / KEEP


def run_reversible(
    layers: Sequence[ReversibleLayer], states: torch.Tensor, training: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both streams begin as `states`."""
    kept = [layer.draw_kept(states) if training else (None,) * 4 for layer in layers]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    return _Reversible.apply(states, layers, kept, *parameters)


class _Reversible(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: torch.Tensor, layers: Sequence[ReversibleLayer], kept: list[Kept], *parameters: nn.Parameter
    ) -> tuple[torch.Tensor, torch.Tensor]:
        first = second = states
        orders = []
        for layer, left in zip(layers, kept, strict=True):
            attended, order = layer.attend(second, left, None)
            first = first + attended
            second = second + layer.transform(first, left)
            orders.append(order)
        ctx.layers, ctx.kept, ctx.orders = layers, kept, orders
        ctx.precision = same_precision(states.device.type)
        ctx.save_for_backward(first.detach(), second.detach())
        return first, second

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        first, second = ctx.saved_tensors
        first_gradient, second_gradient = gradients
        of_parameters: list[torch.Tensor] = []
        for layer, kept, order in zip(reversed(ctx.layers), reversed(ctx.kept), reversed(ctx.orders), strict=True):
            inner = [*layer.inner_norm.parameters(), *layer.widen.parameters(), *layer.narrow.parameters()]
            outer = [*layer.attention_norm.parameters(), *layer.attention.parameters()]
            transform = partial(layer.transform, kept=kept)
            attend = partial(layer.attend_in_order, kept=kept, order=order)
            with ctx.precision():
                transformed, grown, inner_gradients = compute_again(transform, first, inner, second_gradient)
            second = second - transformed
            first_gradient = first_gradient + grown
            with ctx.precision():
                attended, grown, outer_gradients = compute_again(attend, second, outer, first_gradient)
            first = first - attended
            second_gradient = second_gradient + grown
            of_parameters = [*outer_gradients, *inner_gradients, *of_parameters]
        return first_gradient + second_gradient, None, None, *of_parameters


def compute_again(
    function: Callable[[torch.Tensor], torch.Tensor],
    states: torch.Tensor,
    parameters: list[nn.Parameter],
    gradient: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """What `function` makes of `states`, and by the gradient of that, those of the states and of the parameters."""
    with torch.enable_grad():
        states = states.detach().requires_grad_()
        # not the leaf itself: who counts operators by module hooks its inputs, and a hook of a leaf does not run here
        result = function(states.view_as(states))
        of_states, *of_parameters = torch.autograd.grad(result, [states, *parameters], gradient.to(result.dtype))
    return result.detach(), of_states, of_parameters


def same_precision(device: str) -> Callable[[], AbstractContextManager[Any]]:
    """Makes contexts that cast as torch does now: in a backward pass it casts nothing."""
    if not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
        return nullcontext
    return partial(torch.autocast, device, torch.get_autocast_dtype(device))
