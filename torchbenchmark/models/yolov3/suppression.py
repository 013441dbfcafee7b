"""Non-maximum suppression of a fixed size: the same operations whatever is found, and nothing that the host must know.

A network's boxes are narrowed to the best of each image, each with its best class; of two that overlap and share a
class, the better one stays.
"""

import torch

from torchbenchmark.models.yolov3.detection_loss import TINY, corners
from torchbenchmark.models.yolov3.network import BOX


def detections(decoded: torch.Tensor, candidates: int, confidence: float, iou: float) -> torch.Tensor:
    """[batch, candidates, 6] from best to worst: two corners, score and class; all 0 where nothing is detected."""
    scores, labels = (decoded[..., 4:BOX] * decoded[..., BOX:]).max(dim=-1)
    best, place = scores.topk(min(candidates, scores.shape[1]), dim=1)
    label = labels.gather(1, place)
    boxes = torch.cat(corners(decoded), dim=-1).gather(1, place[..., None].expand(-1, -1, 4))
    kept = suppress(boxes, label, best > confidence, iou)
    found = torch.cat([boxes, best[..., None], label[..., None].to(boxes.dtype)], dim=-1)
    return found * kept[..., None]


def suppress(boxes: torch.Tensor, label: torch.Tensor, valid: torch.Tensor, iou: float) -> torch.Tensor:
    """Which of the valid boxes, sorted from best to worst, stay: [batch, boxes].

    A box that stays removes the worse ones of its label that overlap it by more than `iou`; a removed one removes none.
    """
    rivals = (pairwise_iou(boxes) > iou) & (label[:, :, None] == label[:, None, :])
    removes = rivals.triu(diagonal=1).unbind(dim=1)
    kept = valid
    for rank, removed in enumerate(removes):
        kept = kept > (kept[:, rank : rank + 1] & removed)  # of truth values, `a > b` is `a and not b`
    return kept


def pairwise_iou(boxes: torch.Tensor) -> torch.Tensor:
    """[batch, boxes, boxes], of boxes given by their corners."""
    low, high = boxes[..., :2], boxes[..., 2:]
    shared = torch.minimum(high[:, :, None], high[:, None]) - torch.maximum(low[:, :, None], low[:, None])
    both = shared.clamp(min=0).prod(dim=-1)
    area = (high - low).prod(dim=-1)
    return both / (area[:, :, None] + area[:, None] - both + TINY)
