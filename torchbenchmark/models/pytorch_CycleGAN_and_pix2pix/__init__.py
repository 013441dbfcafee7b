"""pytorch_CycleGAN_and_pix2pix: translation between two unpaired sets of images (Zhu et al., CycleGAN, 2017)."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.patch_discriminator import PatchDiscriminator, discriminator_loss, distance_to_real
from torchbenchmark.families.residual_generator import COLOURS, edge_convolution, encoder, reflecting_blocks
from torchbenchmark.families.small_normal_weights import initialize_small_and_normal
from torchbenchmark.families.two_player_game import TwoPlayerGame
from torchbenchmark.model import Preset
from torchbenchmark.models.pytorch_CycleGAN_and_pix2pix.image_pool import KEPT, ImagePool

LEARNING_RATE = 2e-4
BETAS = (0.5, 0.999)
CYCLE_WEIGHT = 10.0
IDENTITY_WEIGHT = 0.5 * CYCLE_WEIGHT


class Model(TwoPlayerGame):
    """train: one step of both generators together, then one of both discriminators. eval: one generator.

    In training the module is the pair of generators, which is called once.
    """

    PRESETS = {
        "full": Preset(
            train_batch=1, eval_batch=1, shape={"image": 256, "width": 64, "blocks": 9, "discriminator_width": 64}
        ),
        "tiny": Preset(
            train_batch=1, eval_batch=4, shape={"image": 32, "width": 8, "blocks": 1, "discriminator_width": 8}
        ),
    }

    def setup(self) -> None:
        with torch.device(self.device):
            if self.test == "eval":
                self.module = self.build_generator()
                self.example_inputs = (self.random_images(),)
                return
            self.module = GeneratorPair(self.build_generator(), self.build_generator())
            self.example_inputs = (self.random_images(), self.random_images())
            self.discriminators = nn.ModuleList(self.build_discriminator() for _ in range(2))
            self.pools = tuple(ImagePool(self.random_images(KEPT)) for _ in range(2))
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE, betas=BETAS)
        self.discriminator_optimizer = torch.optim.Adam(self.discriminators.parameters(), lr=LEARNING_RATE, betas=BETAS)

    def build_generator(self) -> nn.Module:
        generator = Generator(self.shape["width"], self.shape["blocks"])
        initialize_small_and_normal(generator)
        return generator

    def build_discriminator(self) -> nn.Module:
        discriminator = PatchDiscriminator(COLOURS, self.shape["discriminator_width"])
        initialize_small_and_normal(discriminator)
        return discriminator

    def random_images(self, count: int | None = None) -> torch.Tensor:
        """Colours between -1 and 1."""
        image = self.shape["image"]
        return 2 * torch.rand(count or self.batch_size, COLOURS, image, image) - 1

    def play(self) -> torch.Tensor:
        """Both steps. Returns the sum of the generators' and the discriminators' loss, detached."""
        generator_loss, made = self.update_generators()
        return generator_loss + self.update_discriminators(made)

    def update_generators(self) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Towards images that the discriminators take for real, that translate back, and that stay where they are
        already of the wanted kind. Also returns the made images of the first and of the second kind."""
        first, second = self.example_inputs
        made_second, made_first, back_to_first, back_to_second, same_first, same_second = self.call_module()
        judge_first, judge_second = self.discriminators
        fooling = distance_to_real(judge_first(made_first)) + distance_to_real(judge_second(made_second))
        cycle = functional.l1_loss(back_to_first, first) + functional.l1_loss(back_to_second, second)
        identity = functional.l1_loss(same_first, first) + functional.l1_loss(same_second, second)
        loss = fooling + CYCLE_WEIGHT * cycle + IDENTITY_WEIGHT * identity
        return self.step_generator(loss), (made_first.detach(), made_second.detach())

    def update_discriminators(self, made: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Towards telling the real images of each kind from those that the pool gives for the made ones."""
        losses = [
            discriminator_loss(judge(real), judge(pool.exchange(fake)))
            for judge, real, fake, pool in zip(self.discriminators, self.example_inputs, made, self.pools, strict=True)
        ]
        return self.step_discriminator(torch.stack(losses).sum())


class Generator(nn.Module):
    """An encoder to a quarter of the resolution, residual blocks there, and transposed convolutions back to an image
    between -1 and 1."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        layers = [*encoder(COLOURS, width, nn.InstanceNorm2d), *reflecting_blocks(blocks, 4 * width, nn.InstanceNorm2d)]
        for channels in (4 * width, 2 * width):
            layers += [
                nn.ConvTranspose2d(channels, channels // 2, kernel_size=3, stride=2, padding=1, output_padding=1),
                nn.InstanceNorm2d(channels // 2),
                nn.ReLU(inplace=True),
            ]
        self.layers = nn.Sequential(*layers, *edge_convolution(width, COLOURS), nn.Tanh())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


class GeneratorPair(nn.Module):
    """The generators from the first kind of image to the second and back, and all that a training step makes."""

    def __init__(self, to_second: nn.Module, to_first: nn.Module) -> None:
        super().__init__()
        self.to_second, self.to_first = to_second, to_first

    def forward(
        self, first: torch.Tensor, second: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Made images of the second and first kind, both translated back, and what each generator makes of an image
        that is already of its kind, first and second."""
        made_second, made_first = self.to_second(first), self.to_first(second)
        return (
            made_second,
            made_first,
            self.to_first(made_second),
            self.to_second(made_first),
            self.to_first(first),
            self.to_second(second),
        )
