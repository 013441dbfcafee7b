"""pytorch_stargan: one generator that changes the attributes of faces as it is told (Choi et al., StarGAN, 2018)."""

import torch
from torch.nn import functional

from torchbenchmark.families.two_player_game import TwoPlayerGame
from torchbenchmark.model import Preset
from torchbenchmark.models.pytorch_stargan.gradient_penalty import gradient_penalty
from torchbenchmark.models.pytorch_stargan.networks import COLOURS, Discriminator, Generator

LEARNING_RATE = 1e-4
BETAS = (0.5, 0.999)
PENALTY_WEIGHT = 10.0
RECONSTRUCTION_WEIGHT = 10.0
CLASSIFICATION_WEIGHT = 1.0
FULL_SHAPE = {"image": 128, "attributes": 5, "width": 64, "blocks": 6, "halvings": 6, "critic_steps": 5}


class Model(TwoPlayerGame):
    """train: one whole period of the game, some steps of the discriminator and one of the generator, on a fixed batch.
    eval: the generator.

    Shapes: `blocks` are residual, `halvings` the strided convolutions of the discriminator, `critic_steps` its steps.
    """

    PRESETS = {
        "full": Preset(train_batch=24, eval_batch=24, shape=FULL_SHAPE),
        "head": Preset(train_batch=16, eval_batch=16, shape=FULL_SHAPE),
        "tiny": Preset(
            train_batch=2,
            eval_batch=4,
            shape={"image": 32, "attributes": 5, "width": 8, "blocks": 1, "halvings": 4, "critic_steps": 2},
        ),
    }

    def setup(self) -> None:
        shape = self.shape
        with torch.device(self.device):
            self.module = Generator(shape["attributes"], shape["width"], shape["blocks"])
            images = 2 * torch.rand(self.batch_size, COLOURS, shape["image"], shape["image"]) - 1
            self.example_inputs = (images, self.random_attributes())
            if self.test == "eval":
                return
            self.own_attributes = self.random_attributes()
            self.discriminator = Discriminator(shape["image"], shape["attributes"], shape["width"], shape["halvings"])
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE, betas=BETAS)
        self.discriminator_optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=LEARNING_RATE, betas=BETAS)

    def random_attributes(self) -> torch.Tensor:
        return torch.randint(2, (self.batch_size, self.shape["attributes"])).float()

    def play(self) -> torch.Tensor:
        """The discriminator's steps, then the generator's. Returns the sum of the losses of the last step of each."""
        for _ in range(self.shape["critic_steps"]):
            discriminator_loss = self.update_discriminator()
        return discriminator_loss + self.update_generator()

    def update_discriminator(self) -> torch.Tensor:
        """Towards high scores of real images and low ones of made images, slopes of 1 between them, and the attributes
        of the real ones."""
        images, _ = self.example_inputs
        with torch.no_grad():
            made = self.call_module()
        scores, guessed = self.discriminator(images)
        scores_of_made, _ = self.discriminator(made)
        loss = (
            scores_of_made.mean()
            - scores.mean()
            + CLASSIFICATION_WEIGHT * attribute_loss(guessed, self.own_attributes)
            + PENALTY_WEIGHT * gradient_penalty(self.discriminator, images, made)
        )
        return self.step_discriminator(loss)

    def update_generator(self) -> torch.Tensor:
        """Towards high scores, the attributes that were asked for, and the way back to the image."""
        images, wanted = self.example_inputs
        made = self.call_module()
        scores, guessed = self.discriminator(made)
        back = self.module(made, self.own_attributes)
        loss = (
            CLASSIFICATION_WEIGHT * attribute_loss(guessed, wanted)
            + RECONSTRUCTION_WEIGHT * functional.l1_loss(back, images)
            - scores.mean()
        )
        return self.step_generator(loss)


def attribute_loss(guessed: torch.Tensor, attributes: torch.Tensor) -> torch.Tensor:
    """Binary cross-entropy, summed over the attributes of an image and averaged over images."""
    return functional.binary_cross_entropy_with_logits(guessed, attributes, reduction="sum") / len(guessed)
