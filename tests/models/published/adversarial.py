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


def matting_layers(width: int = 64, shared_blocks: int = 7, branch_blocks: int = 3) -> list[tuple[int, int, int, int]]:
    """Of the matting network's convolutions the channels in and out, the kernel, and by what the resolution of a
    picture is divided where they work."""
    deep = 4 * width
    layers = []
    for channels in (3, 3, 1, 4):
        layers += [(channels, width, 7, 1), (width, 2 * width, 3, 2), (2 * width, deep, 3, 4), (2 * deep, width, 1, 4)]
    layers.pop(3)  # the picture itself needs no selector
    layers.append((deep + 3 * width, deep, 1, 4))
    layers += [(deep, deep, 3, 4)] * 2 * (shared_blocks + 2 * branch_blocks)
    layers += [(deep, 2 * width, 3, 2), (2 * width, width, 3, 1), (width, 1, 7, 1)]
    return [*layers, (deep, 2 * width, 3, 2), (4 * width, width, 3, 1), (width, 3, 7, 1)]


def matting_parameters() -> int:
    """Weights; a scale and a shift of every convolution but the last of each branch; a bias of all that are wider than
    a pixel."""
    weights = sum(inputs * outputs * kernel**2 for inputs, outputs, kernel, _ in matting_layers())
    normalizations = sum(2 * outputs for _, outputs, _, _ in matting_layers()) - 2 * (1 + 3)
    return weights + normalizations + sum(outputs for _, outputs, kernel, _ in matting_layers() if kernel > 1)


def matting(image: int = 512) -> int:
    return sum(
        inputs * outputs * kernel**2 * (image // divisor) ** 2 for inputs, outputs, kernel, divisor in matting_layers()
    )


PUBLISHED = {
    "pytorch_CycleGAN_and_pix2pix": Published(
        11_378_179,
        (1, 3, 256, 256),
        (1, 3, 256, 256),
        {"lr": 2e-4, "betas": (0.5, 0.999), "weight_decay": 0},
        cyclegan(),
    ),
    "pytorch_stargan": Published(
        8_430_528,
        (24, 3, 128, 128),
        (24, 3, 128, 128),
        {"lr": 1e-4, "betas": (0.5, 0.999), "weight_decay": 0},
        stargan(),
    ),
    "Background_Matting": Published(
        matting_parameters(),
        (1, 3, 512, 512),
        (1, 3, 512, 512),
        {"lr": 1e-4, "betas": (0.9, 0.999), "weight_decay": 0},
        matting(),
    ),
}
