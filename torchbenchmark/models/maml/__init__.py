"""maml: second-order model-agnostic meta-learning of a small convolutional network (Finn et al. 2017)."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.meta_learning import BatchNormalization, MetaLearner, random_tasks
from torchbenchmark.model import BenchmarkModel, Preset

LEARNING_RATE = 1e-3
ADAPTATION_RATE = 0.4
WAYS, SHOTS = 5, 1  # classes of a task, and images of each to learn from
SIDE = 28
CONVOLUTIONS = ((3, 2), (3, 2), (3, 2), (2, 1))  # kernel and stride; they leave one pixel of 28 x 28


class Model(BenchmarkModel):
    """train: one step on the mean loss of a batch of tasks, each asked after some steps of adaptation to it. eval: more
    steps of adaptation to each task, from the same start, and its answers. The batch size counts tasks; the presets'
    shapes say how many `train_steps` and `eval_steps` there are, and how many `queries` about each class.
    """

    PRESETS = {
        "full": Preset(
            train_batch=32, eval_batch=1, shape={"channels": 64, "queries": 15, "train_steps": 5, "eval_steps": 10}
        ),
        "tiny": Preset(
            train_batch=2, eval_batch=2, shape={"channels": 16, "queries": 3, "train_steps": 2, "eval_steps": 3}
        ),
    }

    def setup(self) -> None:
        with torch.device(self.device):
            steps = self.shape[f"{self.test}_steps"]
            self.module = MetaLearner(build_network(self.shape["channels"]), ADAPTATION_RATE, steps)
            tasks = random_tasks(self.batch_size, WAYS, SHOTS, self.shape["queries"], SIDE)
            self.example_inputs = (tasks.support, tasks.support_labels, tasks.queries)
            if self.test == "train":
                self.query_labels = tasks.query_labels
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return functional.cross_entropy(self.call_module().flatten(0, 1), self.query_labels.flatten())


def build_network(channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    inputs = 1
    for kernel, stride in CONVOLUTIONS:
        layers += [nn.Conv2d(inputs, channels, kernel, stride), nn.ReLU(), BatchNormalization(channels)]
        inputs = channels
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, WAYS))
