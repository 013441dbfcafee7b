"""Model-agnostic meta-learning (Finn et al. 2017): networks whose initial weights are trained for what a few steps of
gradient descent make of them.

Tasks are adapted to one after the other, as V1 did: thousands of small operators, and a backward pass through
backward passes.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional


class MetaLearner(nn.Module):
    """A network that adapts to each task of a batch before it answers. In training the adaptation has a graph, so the
    gradient of the answers' loss holds second derivatives."""

    def __init__(self, network: nn.Module, rate: float, steps: int) -> None:
        super().__init__()
        self.network = network
        self.rate = rate
        self.steps = steps

    def forward(self, support: torch.Tensor, support_labels: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Logits [tasks, queries, classes]; all arguments have the tasks first."""
        answers = []
        for images, labels, asked in zip(support.unbind(), support_labels.unbind(), queries.unbind(), strict=True):
            answers.append(functional_call(self.network, self.adapt(images, labels), asked))
        return torch.stack(answers)

    @torch.enable_grad()
    def adapt(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Weights of the network after steps of gradient descent on one task: with gradients also in an inference,
        which has none outside of here."""
        weights: dict[str, torch.Tensor] = dict(self.network.named_parameters())
        for _ in range(self.steps):
            loss = functional.cross_entropy(functional_call(self.network, weights, images), labels)
            gradients = torch.autograd.grad(loss, tuple(weights.values()), create_graph=self.training)
            weights = {
                name: self._keep(torch.sub(weight, gradient, alpha=self.rate))
                for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
            }
        return weights

    def _keep(self, weight: torch.Tensor) -> torch.Tensor:
        """A weight with its history where that will be differentiated, else as a new start."""
        return weight if self.training else weight.detach().requires_grad_()


@dataclass(frozen=True)
class Tasks:
    """Classifications of so many `ways`, told by a few images of each class; all fields have the tasks first."""

    support: torch.Tensor  # [tasks, ways * shots, 1, side, side]
    support_labels: torch.Tensor  # [tasks, ways * shots]
    queries: torch.Tensor  # [tasks, ways * queries, 1, side, side]
    query_labels: torch.Tensor  # [tasks, ways * queries]


def random_tasks(tasks: int, ways: int, shots: int, queries: int, side: int) -> Tasks:
    """Random classes: each is a picture of its own, and its images are that picture with noise."""
    classes = torch.rand(tasks, ways, 1, side, side)

    def images_of(each: int) -> tuple[torch.Tensor, torch.Tensor]:
        pictures = classes.repeat_interleave(each, dim=1)
        labels = torch.arange(ways).repeat_interleave(each).expand(tasks, -1).contiguous()
        return pictures + 0.3 * torch.randn_like(pictures), labels

    return Tasks(*images_of(shots), *images_of(queries))


class BatchNormalization(nn.BatchNorm2d):
    """By the statistics of the batch at hand, in training and inference: an adaptation leaves no statistics behind."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, track_running_stats=False)
