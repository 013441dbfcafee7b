"""yolov3: detection of objects at three scales with YOLOv3-SPP (Redmon and Farhadi 2018)."""

import torch
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.models.yolov3.detection_loss import Truth, detection_loss
from torchbenchmark.models.yolov3.network import ANCHORS, COLOURS, STRIDES, Detector, YoloV3
from torchbenchmark.models.yolov3.suppression import detections

LEARNING_RATE = 1e-3  # V1 rises to ten times as much, over 500 iterations
MOMENTUM = 0.937
WEIGHT_DECAY = 5e-4
CONFIDENCE = 0.3
SUPPRESSING_IOU = 0.6
SMALLEST, LARGEST = 0.05, 0.6  # box of the random truth, as shares of the image
FULL_SHAPE = {
    "train_image": (416, 416),
    "eval_image": (384, 512),
    "width": 32,
    "blocks": (1, 2, 8, 8, 4),
    "classes": 80,
    "boxes": 8,
    "candidates": 128,
}


class Model(BenchmarkModel):
    """train: SGD with Nesterov's momentum on random boxes, as many in each image. eval: a network's boxes, decoded and
    suppressed.

    Shapes: images are (height, width); `blocks` are those of the five stages, `width` the channels before the first,
    `boxes` in an image, `candidates` the boxes that the suppression looks at.
    """

    PRESETS = {
        "full": Preset(train_batch=8, eval_batch=1, shape=FULL_SHAPE),
        "head": Preset(train_batch=16, eval_batch=8, shape=FULL_SHAPE),
        # 64 pixels leave 2x2 at the last stage: batch normalization then has something to average, also at batch 1
        "tiny": Preset(
            train_batch=2,
            eval_batch=2,
            shape={
                "train_image": (64, 64),
                "eval_image": (64, 96),
                "width": 4,
                "blocks": (1, 1, 1, 1, 1),
                "classes": 4,
                "boxes": 4,
                "candidates": 24,
            },
        ),
    }

    def setup(self) -> None:
        height, width = self.shape[f"{self.test}_image"]
        with torch.device(self.device):
            network = YoloV3(self.shape["width"], self.shape["blocks"], self.shape["classes"])
            self.module = network if self.test == "train" else Detector(network, height, width)
            self.example_inputs = (torch.rand(self.batch_size, COLOURS, height, width),)
            if self.test == "train":
                self.truth = self.random_truth()
                sizes = zip(ANCHORS, STRIDES, strict=True)
                self.anchors = tuple(torch.tensor(anchors).float() / stride for anchors, stride in sizes)
        if self.test == "train":
            self.optimizer = torch.optim.SGD(
                self.module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, nesterov=True, weight_decay=WEIGHT_DECAY
            )

    def random_truth(self) -> Truth:
        boxes = (self.batch_size, self.shape["boxes"])
        sizes = SMALLEST + (LARGEST - SMALLEST) * torch.rand(*boxes, 2)
        centres = sizes / 2 + (1 - sizes) * torch.rand(*boxes, 2)  # so that all of a box lies in its image
        labels = torch.randint(self.shape["classes"], boxes)
        return Truth(torch.cat([centres, sizes], dim=-1), functional.one_hot(labels, self.shape["classes"]).float())

    def forward(self) -> torch.Tensor:
        return detection_loss(self.call_module(), self.truth, self.anchors)

    def eval(self) -> tuple[torch.Tensor, ...]:
        if self.test == "train":
            return super().eval()
        return (detections(self.call_module(), self.shape["candidates"], CONFIDENCE, SUPPRESSING_IOU),)
