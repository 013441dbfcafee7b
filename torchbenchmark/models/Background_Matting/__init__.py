"""Background_Matting: a matting network that learns unlabelled pictures from a teacher and a critic (Sengupta et al.,
Background Matting: The World is Your Green Screen, 2020)."""

import torch
from torch import nn

from torchbenchmark.families.patch_discriminator import PatchDiscriminator, discriminator_loss, distance_to_real
from torchbenchmark.families.residual_generator import COLOURS
from torchbenchmark.families.small_normal_weights import initialize_small_and_normal
from torchbenchmark.families.two_player_game import TwoPlayerGame
from torchbenchmark.model import Preset
from torchbenchmark.models.Background_Matting.matting_losses import (
    SlopeDistance,
    compose,
    masked_distance,
    opacity_loss,
)
from torchbenchmark.models.Background_Matting.network import FRAMES, SEGMENTATION, MattingNetwork

GENERATOR_LEARNING_RATE = 1e-4
DISCRIMINATOR_LEARNING_RATE = 1e-5
SUPERVISION_WEIGHT = 0.05  # of each loss beside the critic's
SOMEWHAT_OPAQUE, CERTAINLY_OPAQUE = -0.98, 0.95
PADDING = 2  # of the discriminator's convolutions
SHIFT = 8  # by one part in this many of its width is the person moved on the new background
FULL_SHAPE = {"image": 512, "width": 64, "shared_blocks": 7, "branch_blocks": 3, "discriminator_width": 64}


class Model(TwoPlayerGame):
    """train: one step of the student towards a frozen teacher's mattes and compositions that look real, then one of the
    discriminator. eval: one network.
    """

    PRESETS = {
        "full": Preset(train_batch=1, eval_batch=1, shape=FULL_SHAPE),
        "head": Preset(train_batch=4, eval_batch=4, shape=FULL_SHAPE),
        "tiny": Preset(
            train_batch=1,
            eval_batch=2,
            shape={"image": 32, "width": 4, "shared_blocks": 1, "branch_blocks": 1, "discriminator_width": 8},
        ),
    }

    def setup(self) -> None:
        with torch.device(self.device):
            self.module = self.build_network()
            self.example_inputs = tuple(
                self.random_images(channels) for channels in (COLOURS, COLOURS, SEGMENTATION, FRAMES)
            )
            if self.test == "eval":
                return
            self.teacher = self.build_network().eval().requires_grad_(False)
            self.new_background = self.random_images(COLOURS)
            self.slope_distance = SlopeDistance()
            self.discriminator = PatchDiscriminator(COLOURS, self.shape["discriminator_width"], padding=PADDING)
            initialize_small_and_normal(self.discriminator)
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=GENERATOR_LEARNING_RATE)
        self.discriminator_optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=DISCRIMINATOR_LEARNING_RATE)

    def build_network(self) -> nn.Module:
        network = MattingNetwork(self.shape["width"], self.shape["shared_blocks"], self.shape["branch_blocks"])
        initialize_small_and_normal(network)
        return network

    def random_images(self, channels: int) -> torch.Tensor:
        """Values between -1 and 1."""
        image = self.shape["image"]
        return 2 * torch.rand(self.batch_size, channels, image, image) - 1

    def play(self) -> torch.Tensor:
        """Both steps. Returns the sum of the student's and the discriminator's loss, detached."""
        student_loss, composition = self.update_student()
        return student_loss + self.update_discriminator(composition)

    def update_student(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Towards the teacher's matte, one that explains the picture, and one that looks real before a new background.
        Also returns that composition."""
        picture, background, segmentation, _ = self.example_inputs
        with torch.no_grad():
            wanted_opacity, wanted_foreground = self.teacher(*self.example_inputs)
        opacity, foreground = self.call_module()

        matte = opacity_loss(opacity, wanted_opacity, self.slope_distance)
        colours = masked_distance(foreground, wanted_foreground, wanted_opacity > SOMEWHAT_OPAQUE)
        explained = compose(opacity, foreground, background)
        explanation = masked_distance(explained, picture, segmentation > CERTAINLY_OPAQUE)

        own_colours = torch.where(opacity > CERTAINLY_OPAQUE, picture, foreground)
        composition = compose(self.moved(opacity), self.moved(own_colours), self.new_background)
        fooling = distance_to_real(self.discriminator(composition))
        loss = fooling + SUPERVISION_WEIGHT * (matte + colours + explanation)
        return self.step_generator(loss), composition.detach()

    def update_discriminator(self, composition: torch.Tensor) -> torch.Tensor:
        """Towards telling real pictures from compositions."""
        picture = self.example_inputs[0]
        loss = discriminator_loss(self.discriminator(picture), self.discriminator(composition))
        return self.step_discriminator(loss)

    def moved(self, images: torch.Tensor) -> torch.Tensor:
        return images.roll(self.shape["image"] // SHIFT, dims=3)
