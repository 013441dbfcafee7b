"""What is special to LearningToPaint: strokes rasterised by hand, and a renderer that learns them."""

import math

import pytest
import torch

from torchbenchmark.models.LearningToPaint import Model, strokes

SIDE = 32


def stroke(start=(0.5, 0.5), bend=(0.5, 0.5), end=(0.5, 0.5), size=(0.2, 0.2), strength=(1.0, 1.0)):
    return torch.tensor([*start, *bend, *end, *size, *strength]).unsqueeze(0)


def draw(**numbers):
    (picture,) = strokes.draw(stroke(**numbers), SIDE)
    return picture


def picture_pixel_by_pixel(numbers, side):
    """The rules of a stroke, written for one pixel and one stamp at a time."""
    x0, y0, x1, y1, x2, y2, thick, thin, dark, light = numbers
    x1, y1 = x0 + (x2 - x0) * x1, y0 + (y2 - y0) * y1
    picture = [[1.0] * side for _ in range(side)]
    for stamp in range(100):
        t = stamp / 99
        x = (1 - t) * (1 - t) * x0 + 2 * t * (1 - t) * x1 + t * t * x2
        y = (1 - t) * (1 - t) * y0 + 2 * t * (1 - t) * y1 + t * t * y2
        radius = 1 / side + 0.25 * ((1 - t) * thick + t * thin)
        for row in range(side):
            for column in range(side):
                if math.hypot((column + 0.5) / side - x, (row + 0.5) / side - y) <= radius:
                    picture[row][column] = 1 - ((1 - t) * dark + t * light)
    return torch.tensor(picture)


def test_strokes_are_those_drawn_pixel_by_pixel():
    numbers = torch.rand(3, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = torch.stack([picture_pixel_by_pixel(row, 12) for row in numbers.tolist()])
    torch.testing.assert_close(strokes.draw(numbers, 12), expected.double(), atol=1e-6, rtol=0)


def test_a_stroke_that_goes_nowhere_is_one_disc():
    picture = draw(size=(0.6, 0.6), strength=(0.75, 0.75))
    radius = SIDE * (1 / SIDE + 0.25 * 0.6)
    assert set(picture.unique().tolist()) == {0.25, 1.0}
    assert (picture == 0.25).sum().item() == pytest.approx(math.pi * radius**2, rel=0.1)
    assert torch.equal(picture, picture.T) and torch.equal(picture, picture.flip(0))


def test_a_level_stroke_marks_its_rows_from_start_to_end_and_nothing_else():
    picture = draw(start=(0.25, 0.5), end=(0.75, 0.5), size=(0.0, 0.0))
    inked = (picture < 1).nonzero()
    assert set(inked[:, 0].tolist()) == {15, 16}
    assert inked[:, 1].min() == 7 and inked[:, 1].max() == 24


def test_size_and_strength_change_along_the_stroke():
    picture = draw(start=(0.2, 0.5), end=(0.8, 0.5), size=(0.0, 0.8), strength=(0.2, 1.0))
    heights = (picture < 1).sum(dim=0)
    assert heights[7] < heights[15] < heights[25]
    assert picture[16, 6] > picture[16, 15] > picture[16, 25]


def test_a_bend_pulls_the_stroke_off_the_straight_line():
    straight = draw(start=(0.1, 0.1), bend=(0.5, 0.5), end=(0.9, 0.9), size=(0.0, 0.0))
    bent = draw(start=(0.1, 0.1), bend=(1.0, 0.0), end=(0.9, 0.9), size=(0.0, 0.0))
    assert torch.equal(straight, straight.T) and straight[15, 15] < 1
    assert bent[15, 15] == 1 and bent[9, 22] < 1


def test_targets_are_the_drawings_of_the_strokes_that_the_renderer_is_given():
    model = Model(test="train", device="cpu", preset="tiny", batch_size=2)
    (numbers,) = model.example_inputs
    pictures = model.module(numbers)
    assert pictures.shape == (2, 64, 64)
    assert torch.equal(model.pictures, strokes.draw(numbers, 64))
    expected = (pictures - model.pictures).square().sum() / pictures.numel()
    torch.testing.assert_close(model.invoke()[0], expected.detach())


def test_pixels_come_from_groups_of_four_channels():
    """Pixel (2r + a, 2c + b) is channel 2a + b of the last convolution at (r, c)."""
    model = Model(test="eval", device="cpu", preset="tiny", batch_size=1)
    features = model.module.layers[:-1](*model.example_inputs)
    (picture,) = model.module(*model.example_inputs)
    for channel in range(4):
        expected = 1 - features[0, channel].sigmoid()
        torch.testing.assert_close(picture[channel // 2 :: 2, channel % 2 :: 2], expected)


def test_the_renderer_learns_strokes_where_its_steps_are_larger():
    model = Model(test="train", device="cpu", preset="tiny", batch_size=4)
    model.optimizer.param_groups[0]["lr"] = 1e-3
    curve = [model.invoke()[0].item() for _ in range(150)]
    assert curve[-1] < 0.25 * curve[0]
