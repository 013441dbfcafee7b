"""True pictures of brush strokes: discs stamped along a quadratic Bezier curve, many strokes at once, on the device of
their numbers.

A stroke is ten numbers from 0 to 1: x and y of the start, of the bend and of the end; the brush's size at start and
end; the ink's strength at start and end. The bend is given as a share of the way from start to end, in x and in y.
"""

import torch

NUMBERS = 10
STAMPS = 100
LARGEST_RADIUS = 0.25  # of the brush, as a share of the picture's side


def draw(numbers: torch.Tensor, side: int) -> torch.Tensor:
    """Grey pictures [strokes, side, side] of `numbers` [strokes, 10]: 1 is paper, 0 full ink. A later stamp covers
    what lies under it."""
    start, bend, end, size, strength = numbers.reshape(-1, 5, 2).unbind(dim=1)
    bend = start + (end - start) * bend
    centres = (torch.arange(side, device=numbers.device, dtype=numbers.dtype) + 0.5) / side
    ink = numbers.new_zeros(len(numbers), side, side)
    for stamp in range(STAMPS):
        way = stamp / (STAMPS - 1)
        middle = (1 - way) ** 2 * start + 2 * way * (1 - way) * bend + way**2 * end
        radius = 1 / side + LARGEST_RADIUS * _along(size, way)
        squared_x, squared_y = (centres - middle[:, :, None]).square().unbind(dim=1)
        covered = squared_y[:, :, None] + squared_x[:, None, :] <= radius.square()
        ink = torch.where(covered, _along(strength, way), ink)
    return 1 - ink


def _along(ends: torch.Tensor, way: float) -> torch.Tensor:
    """[strokes, 1, 1]: the value on the way from the first of `ends` [strokes, 2] to the second."""
    return torch.lerp(ends[:, 0], ends[:, 1], way)[:, None, None]
