"""What YOLOv3 learns from boxes: generalized IoU (Rezatofighi et al. 2019), objectness, and classes.

Every box is compared with every anchor of every scale, matched or not, and counts with weight 1 or 0: shapes never
depend on values, so the host need not know how many match.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

BOX_WEIGHT, OBJECTNESS_WEIGHT, CLASS_WEIGHT = 3.54, 64.3, 37.4
MATCHING_IOU = 0.2  # of an anchor and a box laid over each other, from which the anchor has to predict the box
NOMINAL_BATCH = 64  # for which the learning rate is meant
LARGEST_GROWTH = math.log(1e3)  # of an anchor
TINY = 1e-9  # keeps quotients of areas finite


@dataclass(frozen=True)
class Truth:
    """`boxes` is [batch, boxes, 4]: centre and size, as shares of the image; `classes` [batch, boxes, classes] is 1 for
    the class of a box and 0 elsewhere."""

    boxes: torch.Tensor
    classes: torch.Tensor


def detection_loss(predictions: Sequence[torch.Tensor], truth: Truth, anchors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum over the scales. `anchors` are [anchors, 2], in cells of their scale."""
    losses = [scale_loss(raw, truth, sizes) for raw, sizes in zip(predictions, anchors, strict=True)]
    return torch.stack(losses).sum() * len(truth.boxes) / NOMINAL_BATCH


def scale_loss(raw: torch.Tensor, truth: Truth, anchors: torch.Tensor) -> torch.Tensor:
    images, kinds, rows, columns, outputs = raw.shape
    horizontal, vertical, width, height = truth.boxes.unbind(dim=-1)
    horizontal, vertical = horizontal * columns, vertical * rows
    column, row = horizontal.long().clamp(max=columns - 1), vertical.long().clamp(max=rows - 1)
    size = torch.stack([width * columns, height * rows], dim=-1)[:, :, None]  # [images, boxes, 1, 2]
    offset = torch.stack([horizontal - column, vertical - row], dim=-1)[:, :, None]

    image = torch.arange(images, device=raw.device)[:, None, None]
    kind = torch.arange(kinds, device=raw.device)
    place = ((image * kinds + kind) * rows + row[:, :, None]) * columns + column[:, :, None]  # [images, boxes, kinds]
    predicted = raw.view(-1, outputs)[place]
    centre = predicted[..., :2].sigmoid()
    # bounded before the exponential, which past e^88 is infinite, with a gradient that is no number
    extent = predicted[..., 2:4].clamp(max=LARGEST_GROWTH).exp() * anchors
    overlap = generalized_iou(
        torch.cat([centre, extent], dim=-1), torch.cat([offset, size], dim=-1).expand_as(predicted[..., :4])
    )

    matched = (iou_of_sizes(size, anchors) > MATCHING_IOU).to(overlap.dtype)
    count = matched.sum().clamp(min=1)
    box_loss = ((1 - overlap) * matched).sum() / count
    class_error = functional.binary_cross_entropy_with_logits(
        predicted[..., 5:], truth.classes[:, :, None].expand_as(predicted[..., 5:]), reduction="none"
    )
    class_loss = (class_error.mean(dim=-1) * matched).sum() / count
    # an anchor that several boxes claim is to be as sure as its best overlap, in whatever order they are written
    sure = overlap.detach().clamp(min=0) * matched
    wanted = sure.new_zeros(images * kinds * rows * columns).scatter_reduce(0, place.flatten(), sure.flatten(), "amax")
    objectness_loss = functional.binary_cross_entropy_with_logits(raw[..., 4].flatten(), wanted)
    return BOX_WEIGHT * box_loss + OBJECTNESS_WEIGHT * objectness_loss + CLASS_WEIGHT * class_loss


def iou_of_sizes(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Of boxes that lie over each other with a corner in common; the last dimension is width and height."""
    both = area(torch.minimum(first, second))
    return both / (area(first) + area(second) - both + TINY)


def generalized_iou(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Of boxes given by centre and size: IoU less the share of their common hull that neither covers, from -1 to 1."""
    (low, high), (other_low, other_high) = corners(first), corners(second)
    both = area((torch.minimum(high, other_high) - torch.maximum(low, other_low)).clamp(min=0))
    hull = area(torch.maximum(high, other_high) - torch.minimum(low, other_low)) + TINY
    union = area(high - low) + area(other_high - other_low) - both + TINY
    return both / union - (hull - union) / hull


def area(sizes: torch.Tensor) -> torch.Tensor:
    """Of boxes by width and height. Not `prod`, whose backward pass asks the device whether a factor is 0."""
    return sizes[..., 0] * sizes[..., 1]


def corners(boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    centre, half = boxes[..., :2], boxes[..., 2:4] / 2
    return centre - half, centre + half
