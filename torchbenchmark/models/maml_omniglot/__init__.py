"""maml_omniglot: second-order meta-learning of the network for Omniglot with pooling (Finn et al. 2017)."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.meta_learning import BatchNormalization, MetaLearner, random_tasks
from torchbenchmark.model import BenchmarkModel, Preset

LEARNING_RATE = 1e-3
ADAPTATION_RATE = 0.1
WAYS, SHOTS = 5, 1  # classes of a task, and images of each to learn from
SIDE = 28
LAYERS = 3  # of 3x3 convolutions without padding and pooling of 2x2; they leave one pixel of 28 x 28


class Model(BenchmarkModel):
    """train: one step on the mean loss of a batch of tasks, each asked after some steps of adaptation to it; the batch
    size counts tasks. eval: the plain network's logits for the images of one support set; it counts images. The
    presets' shapes say how many `steps` there are, and how many `queries` about each class.
    """

    PRESETS = {
        "full": Preset(train_batch=32, eval_batch=5, shape={"channels": 64, "queries": 15, "steps": 5}),
        "tiny": Preset(train_batch=2, eval_batch=50, shape={"channels": 8, "queries": 3, "steps": 2}),
    }

    def setup(self) -> None:
        with torch.device(self.device):
            network = build_network(self.shape["channels"])
            if self.test == "train":
                self.module = MetaLearner(network, ADAPTATION_RATE, self.shape["steps"])
                tasks = random_tasks(self.batch_size, WAYS, SHOTS, self.shape["queries"], SIDE)
                self.example_inputs = (tasks.support, tasks.support_labels, tasks.queries)
                self.query_labels = tasks.query_labels
            else:
                self.module = network
                self.example_inputs = (torch.rand(self.batch_size, 1, SIDE, SIDE),)
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        return functional.cross_entropy(self.call_module().flatten(0, 1), self.query_labels.flatten())


def build_network(channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    inputs = 1
    for _ in range(LAYERS):
        layers += [nn.Conv2d(inputs, channels, kernel_size=3), BatchNormalization(channels)]
        layers += [nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        inputs = channels
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, WAYS))
