"""The history of made images that a discriminator also sees (Shrivastava et al., Learning from Simulated and
Unsupervised Images through Adversarial Training, 2017), kept and drawn from on the device."""

from dataclasses import dataclass

import torch

KEPT = 50


@dataclass(frozen=True)
class ImagePool:
    """`images` is [KEPT, colours, height, width]. The pool begins full, so that every exchange is the same work."""

    images: torch.Tensor

    def exchange(self, made: torch.Tensor) -> torch.Tensor:
        """Of each made image, with even odds itself, or an older one that it replaces in the pool.

        One image after the other, for two of them may draw the same place; the host learns of no draw.
        """
        return torch.cat([self._exchange_one(image) for image in made.split(1)])

    def _exchange_one(self, image: torch.Tensor) -> torch.Tensor:
        place = torch.randint(KEPT, (1,), device=image.device)
        swap = torch.rand(1, 1, 1, 1, device=image.device) < 0.5
        older = self.images.index_select(0, place)
        self.images.index_copy_(0, place, torch.where(swap, image, older))
        return torch.where(swap, older, image)
