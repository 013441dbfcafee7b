"""The models that two networks train by playing against each other."""

from published.facts import Published


def cyclegan(image: int = 256, width: int = 64, blocks: int = 9) -> int:
    """Multiplications of the generator: two edge convolutions, two layers down and two up, the residual blocks. A layer
    up costs what its mirror image costs: each of its inputs meets each of its weights."""
    edges = 2 * image**2 * 7**2 * 3 * width
    halving = sum((image // 2**step) ** 2 * 3**2 * (width * 2**step) * (width * 2 ** (step - 1)) for step in (1, 2))
    residual = 2 * blocks * (image // 4) ** 2 * 3**2 * (4 * width) ** 2
    return edges + 2 * halving + residual


def stargan(images: int = 24, image: int = 128, width: int = 64, attributes: int = 5, blocks: int = 6) -> int:
    """The same of StarGAN's generator, whose layers up and down are 4x4, for as many images as V1 has in a batch."""
    edges = image**2 * 7**2 * width * (3 + attributes + 3)
    halving = sum((image // 2**step) ** 2 * 4**2 * (width * 2**step) * (width * 2 ** (step - 1)) for step in (1, 2))
    residual = 2 * blocks * (image // 4) ** 2 * 3**2 * (4 * width) ** 2
    return images * (edges + 2 * halving + residual)


PUBLISHED = {
    "pytorch_CycleGAN_and_pix2pix": Published(
        11_378_179,
        (1, 3, 256, 256),
        (1, 3, 256, 256),
        {"lr": 2e-4, "betas": (0.5, 0.999), "weight_decay": 0},
        cyclegan(),
        frozenset({"rand", "randint"}),
    ),
    "pytorch_stargan": Published(
        8_430_528,
        (24, 3, 128, 128),
        (24, 3, 128, 128),
        {"lr": 1e-4, "betas": (0.5, 0.999), "weight_decay": 0},
        stargan(),
        frozenset({"rand"}),
    ),
}
