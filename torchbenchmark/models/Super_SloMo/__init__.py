"""Super_SloMo: frames between two frames of a film, by optical flow (Jiang et al. 2018)."""

import math

import torch

from torchbenchmark.families.image_classifier import COLOURS
from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.Super_SloMo.loss import InterpolationLoss
from torchbenchmark.models.Super_SloMo.network import SuperSloMo

LEARNING_RATE = 1e-4
BETWEEN = 7  # frames between the first and the last of a scene
FULL = {"image": 352, "width": 32, "levels": 5, "perception": (64, 128, 256, 512)}


class Model(BenchmarkModel):
    """train: Adam and the paper's four losses on scenes of three frames. eval: the frame between two of each scene."""

    PRESETS = {
        "full": Preset(train_batch=6, eval_batch=6, shape=FULL),
        "head": Preset(train_batch=6, eval_batch=10, shape=FULL),
        "tiny": Preset(
            train_batch=1,
            eval_batch=2,
            shape={"image": 32, "width": 4, "levels": 3, "perception": (4, 4, 8, 8)},
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.module = SuperSloMo(shape["image"], shape["width"], shape["levels"])
            index = torch.arange(self.batch_size).view(-1, 1, 1, 1) % BETWEEN + 1
            time = index / (BETWEEN + 1)
            first, between, last = random_scenes(time, shape["image"])
            self.example_inputs = (first, last, time)
            if self.test == "train":
                self.between = between
                self.loss = InterpolationLoss(self.module.warp, shape["perception"])
        if self.test == "train":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)

    def forward(self) -> torch.Tensor:
        first, last, _ = self.example_inputs
        return self.loss(self.call_module(), first, self.between, last)

    def eval(self) -> tuple[torch.Tensor, ...]:
        return self.call_module()[:1]


def random_scenes(time: torch.Tensor, image: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The first frame, the one at `time` and the last of scenes in which a wave of each colour moves by up to a sixth
    of its length."""
    places = torch.arange(image)
    direction, phase, length, drift = torch.rand(4, time.shape[0], COLOURS, 1, 1)
    angle = 2 * math.pi * direction
    along = (angle.cos() * places + angle.sin() * places[:, None]) / (3 + 17 * length)

    def frame(moment: torch.Tensor | float) -> torch.Tensor:
        return 0.5 * (along + 2 * math.pi * phase + drift * moment).sin()

    return frame(0.0), frame(time), frame(1.0)
