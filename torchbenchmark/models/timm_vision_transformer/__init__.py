"""timm_vision_transformer: timm's ViT-S/16 for image classification (Dosovitskiy et al. 2020), random weights."""

import torch
from torch.nn import functional

from torchbenchmark.model import BenchmarkModel, Preset
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()

import timm  # noqa: E402 - timm imports torchvision, which the guard above has to prepare

ARCHITECTURE = "vit_small_patch16_224"
COLOURS = 3


class Model(BenchmarkModel):
    """SGD and cross-entropy on random labels; an inference of one image at full size.

    A preset's shape holds the arguments that replace those of the architecture; `full` replaces none.
    """

    PRESETS = {
        "full": Preset(train_batch=64, eval_batch=1, shape={}),
        "tiny": Preset(
            train_batch=4,
            eval_batch=4,
            shape={"img_size": 64, "patch_size": 8, "embed_dim": 64, "depth": 3, "num_heads": 2, "num_classes": 10},
        ),
    }

    def setup(self) -> None:
        with torch.device(self.device):
            self.module = timm.create_model(ARCHITECTURE, pretrained=False, **self.shape)
            height, width = self.module.patch_embed.img_size
            self.example_inputs = (torch.randn(self.batch_size, COLOURS, height, width),)
            if self.test == "train":
                self.labels = torch.randint(self.module.num_classes, (self.batch_size,))
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)

    def forward(self) -> torch.Tensor:
        return functional.cross_entropy(self.call_module(), self.labels)
