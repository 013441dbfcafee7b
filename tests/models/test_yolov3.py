"""What is special to YOLOv3: boxes out of maps, a loss that matches boxes with anchors, and suppression."""

import math

import pytest
import torch
from torch.nn import functional

from torchbenchmark.models.yolov3 import Model
from torchbenchmark.models.yolov3.detection_loss import Truth, detection_loss, generalized_iou, iou_of_sizes, scale_loss
from torchbenchmark.models.yolov3.network import ANCHORS, BoxDecoder, PyramidPooling
from torchbenchmark.models.yolov3.suppression import detections, pairwise_iou, suppress


def area(box):
    left, top, right, bottom = box
    return max(0.0, right - left) * max(0.0, bottom - top)


def iou(one, other):
    shared = area((max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])))
    return shared / (area(one) + area(other) - shared)


def naive_suppression(boxes, labels, valid, threshold):
    """The best of what is left stays and removes what overlaps it, until nothing is left."""
    left = [rank for rank in range(len(boxes)) if valid[rank]]
    kept = []
    while left:
        best, *left = left
        kept.append(best)
        left = [rank for rank in left if labels[rank] != labels[best] or iou(boxes[rank], boxes[best]) <= threshold]
    return [rank in kept for rank in range(len(boxes))]


def random_boxes(batch, count, spread):
    corner = spread * torch.rand(batch, count, 2)
    return torch.cat([corner, corner + 5 + 10 * torch.rand(batch, count, 2)], dim=-1)


def by_centre(box):
    x, y, width, height = box
    return (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def naive_giou(one, other):
    one, other = by_centre(one), by_centre(other)
    hull = area((min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])))
    shared = area((max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])))
    union = area(one) + area(other) - shared
    return shared / union - (hull - union) / hull


def naive_scale_loss(raw, truth, anchors):
    """Box by box: the parts of the loss as a detector's author would write them down."""
    images, kinds, rows, columns, _ = raw.shape
    wanted = torch.zeros(images, kinds, rows, columns)
    box_errors, class_errors = [], []
    for image in range(images):
        for box, classes in zip(truth.boxes[image].tolist(), truth.classes[image], strict=True):
            x, y, width, height = box[0] * columns, box[1] * rows, box[2] * columns, box[3] * rows
            column, row = int(x), int(y)
            for kind, (anchor_width, anchor_height) in enumerate(anchors.tolist()):
                if iou((0, 0, width, height), (0, 0, anchor_width, anchor_height)) <= 0.2:
                    continue
                numbers = raw[image, kind, row, column]
                centre = [column + numbers[0].sigmoid().item(), row + numbers[1].sigmoid().item()]
                size = [anchor_width * math.exp(numbers[2].item()), anchor_height * math.exp(numbers[3].item())]
                overlap = naive_giou((*centre, *size), (x, y, width, height))
                box_errors.append(1 - overlap)
                class_errors.append(functional.binary_cross_entropy_with_logits(numbers[5:], classes).item())
                wanted[image, kind, row, column] = max(wanted[image, kind, row, column].item(), overlap, 0)
    objectness = functional.binary_cross_entropy_with_logits(raw[..., 4], wanted).item()
    return (
        3.54 * sum(box_errors) / len(box_errors) + 64.3 * objectness + 37.4 * sum(class_errors) / len(class_errors)
    ), len(box_errors)


@pytest.fixture
def boxes_and_maps():
    torch.manual_seed(5)
    raw = torch.randn(3, 2, 4, 6, 5 + 3)
    sizes = 0.1 + 0.4 * torch.rand(3, 5, 2)
    centres = sizes / 2 + (1 - sizes) * torch.rand(3, 5, 2)
    labels = torch.randint(3, (3, 5))
    truth = Truth(torch.cat([centres, sizes], dim=-1), functional.one_hot(labels, 3).float())
    return raw, truth, torch.tensor([[1.0, 2.0], [0.4, 0.5]])


@pytest.mark.parametrize("spread", [3.0, 15.0, 60.0])
def test_suppression_keeps_what_a_search_box_by_box_keeps(spread):
    torch.manual_seed(int(spread))
    boxes = random_boxes(4, 40, spread)
    labels = torch.randint(3, (4, 40))
    valid = torch.arange(40) < torch.tensor([[40], [25], [1], [0]])
    kept = suppress(boxes, labels, valid, 0.4)
    assert 0 < kept.sum() < valid.sum()
    for image in range(4):
        expected = naive_suppression(boxes[image].tolist(), labels[image].tolist(), valid[image].tolist(), 0.4)
        assert kept[image].tolist() == expected


def test_along_a_chain_of_overlaps_every_other_box_stays():
    left = torch.arange(50.0)
    boxes = torch.stack([left, 0 * left, left + 3, 0 * left + 1], dim=-1)[
        None
    ]  # IoU of neighbours 1/2, else at most 1/5
    kept = suppress(boxes, torch.zeros(1, 50, dtype=torch.long), torch.ones(1, 50, dtype=torch.bool), 0.4)
    assert kept[0].tolist() == [True, False] * 25


def test_a_box_removes_none_of_another_class_and_none_that_overlaps_it_less():
    boxes = torch.tensor([[[0.0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 9], [0, 0, 10, 5]]])
    kept = suppress(boxes, torch.tensor([[0, 1, 0, 0]]), torch.ones(1, 4, dtype=torch.bool), 0.6)
    assert kept.tolist() == [[True, True, False, True]]


def test_detections_are_the_best_boxes_with_their_best_class_from_best_to_worst():
    decoded = torch.zeros(1, 4, 5 + 2)
    decoded[0, 0] = torch.tensor([50.0, 50, 10, 20, 0.9, 0.8, 0.5])  # 0.72 of the first class
    decoded[0, 1] = torch.tensor(
        [50.0, 51, 10, 20, 0.8, 0.7, 0.1]
    )  # 0.56, of the same class and place as the first box
    decoded[0, 2] = torch.tensor([10.0, 10, 4, 4, 1.0, 0.2, 0.6])  # 0.60 of the second class
    decoded[0, 3] = torch.tensor([90.0, 10, 4, 4, 0.5, 0.5, 0.2])  # 0.25, less than is believed
    found = detections(decoded, candidates=6, confidence=0.3, iou=0.6)
    expected = torch.tensor(
        [
            [45.0, 40, 55, 60, 0.72, 0],
            [8.0, 8, 12, 12, 0.60, 1],
            [0.0, 0, 0, 0, 0, 0],
            [0.0, 0, 0, 0, 0, 0],
        ]
    )
    torch.testing.assert_close(found, expected[None])


def test_overlaps_of_pairs_are_shared_area_over_that_of_both():
    boxes = torch.tensor([[[0.0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6]]])
    expected = torch.tensor([[[1, 1 / 7, 0], [1 / 7, 1, 0], [0, 0, 1]]])
    torch.testing.assert_close(pairwise_iou(boxes), expected)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ((1.0, 1.0, 2.0, 2.0), 1.0),  # the same
        ((2.0, 1.0, 2.0, 2.0), 2 / 6),  # half of each is shared, and the hull is covered
        ((4.0, 1.0, 2.0, 2.0), -2 / 10),  # a gap of 1 between them: 10 in the hull, 8 covered
        ((2.0, 2.0, 2.0, 2.0), 1 / 7 - 2 / 9),  # corner over corner: 9 in the hull, 7 covered
        ((1.0, 1.0, 1.0, 1.0), 1 / 4),  # one inside of the other
    ],
)
def test_the_generalized_iou_of_simple_boxes_is_that_worked_out_by_hand(other, expected):
    box = torch.tensor([1.0, 1.0, 2.0, 2.0])
    assert generalized_iou(box, torch.tensor(other)).item() == pytest.approx(expected, abs=1e-6)


def test_the_generalized_iou_draws_a_box_that_is_far_away_nearer():
    far = torch.tensor([9.0, 1.0, 2.0, 2.0], requires_grad=True)
    generalized_iou(torch.tensor([1.0, 1.0, 2.0, 2.0]), far).backward()
    assert far.grad[0] < 0


def test_sizes_overlap_as_if_laid_over_each_other():
    assert iou_of_sizes(torch.tensor([2.0, 3.0]), torch.tensor([4.0, 1.0])).item() == pytest.approx(2 / (6 + 4 - 2))


def test_the_loss_of_a_scale_is_that_of_a_search_box_by_box(boxes_and_maps):
    raw, truth, anchors = boxes_and_maps
    expected, matches = naive_scale_loss(raw, truth, anchors)
    assert 5 < matches < 30  # of 30 pairs some match and some do not
    assert scale_loss(raw, truth, anchors).item() == pytest.approx(expected, rel=1e-5)


def test_an_anchor_that_two_boxes_claim_is_to_be_as_sure_as_the_better_overlap(boxes_and_maps):
    raw, truth, anchors = boxes_and_maps
    truth.boxes[:, 1] = truth.boxes[:, 0]
    truth.boxes[:, 1, 2:] *= 0.9
    swapped = Truth(truth.boxes.flip(1), truth.classes.flip(1))
    expected, _ = naive_scale_loss(raw, truth, anchors)
    assert scale_loss(raw, truth, anchors).item() == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(scale_loss(raw, swapped, anchors), scale_loss(raw, truth, anchors))


def test_the_loss_is_the_sum_of_the_scales_as_a_share_of_the_nominal_batch(boxes_and_maps):
    raw, truth, anchors = boxes_and_maps
    whole = detection_loss([raw, raw], truth, [anchors, anchors])
    assert whole.item() == pytest.approx(2 * scale_loss(raw, truth, anchors).item() * 3 / 64, rel=1e-5)


@pytest.mark.parametrize("size", [-1000.0, 50.0, 100.0, 1000.0])  # e^100 is more than single precision holds
def test_sizes_that_no_box_has_leave_a_loss_and_gradients_that_are_numbers(boxes_and_maps, size):
    raw, truth, anchors = boxes_and_maps
    raw = raw.clone()
    raw[..., 2:4] = size
    raw.requires_grad_()
    loss = scale_loss(raw, truth, anchors)
    loss.backward()
    assert loss.isfinite() and raw.grad.isfinite().all()


def test_without_a_match_there_is_no_loss_but_that_of_the_objectness(boxes_and_maps):
    raw, truth, _ = boxes_and_maps
    anchors = torch.full((2, 2), 100.0)
    expected = 64.3 * functional.softplus(raw[..., 4]).mean()
    torch.testing.assert_close(scale_loss(raw, truth, anchors), expected)


def test_a_box_is_decoded_from_its_cell_and_its_anchor():
    decoder = BoxDecoder(rows=2, columns=3, stride=32, anchors=((116, 90), (156, 198), (373, 326)))
    raw = torch.zeros(1, 3, 2, 3, 6)
    raw[0, 1, 1, 2] = torch.tensor([math.log(3), 0.0, math.log(2), math.log(0.5), 0.0, math.log(3)])
    decoded = decoder(raw)
    assert decoded.shape == (1, 3 * 2 * 3, 6)
    expected = torch.tensor([(2 + 0.75) * 32, (1 + 0.5) * 32, 312.0, 99.0, 0.5, 0.75])
    torch.testing.assert_close(decoded[0, (1 * 2 + 1) * 3 + 2], expected)


def test_an_inference_of_the_full_size_looks_at_boxes_of_all_scales():
    model = Model(test="eval", device="meta", preset="full")
    assert model.call_module().shape == (1, 3 * (12 * 16 + 24 * 32 + 48 * 64), 85)
    assert [sizes[0] for sizes in ANCHORS] == [(116, 90), (30, 61), (10, 13)]


def test_an_untrained_network_detects_something():
    model = Model(test="eval", device="cpu", preset="tiny")
    (found,) = model.invoke()
    assert (found[..., 4] > 0.3).any(dim=1).all()


def test_the_pyramid_sees_maxima_of_growing_neighbourhoods():
    features = torch.zeros(1, 1, 20, 20)
    features[0, 0, 10, 10] = 1.0
    assert PyramidPooling()(features).sum(dim=(2, 3)).tolist() == [[1, 25, 81, 169]]


def test_the_loss_falls_over_forty_steps():
    model = Model(test="train", device="cpu", preset="tiny")
    curve = torch.stack([model.invoke()[0] for _ in range(40)])
    assert curve[-3:].mean() < 0.7 * curve[:3].mean()


def test_no_more_boxes_are_looked_at_than_are_candidates():
    decoded = torch.zeros(1, 9, 5 + 1)
    decoded[0, :, 0] = 100 * torch.arange(9.0)
    decoded[0, :, 2:4] = 10.0
    decoded[0, :, 4] = torch.tensor([0.1, 0.9, 0.5, 0.8, 0.4, 0.7, 0.6, 0.35, 0.95])
    decoded[0, :, 5] = 1.0
    found = detections(decoded, candidates=4, confidence=0.3, iou=0.6)
    torch.testing.assert_close(found[0, :, 4], torch.tensor([0.95, 0.9, 0.8, 0.7]))
    assert found[0, :, 0].tolist() == [795, 95, 295, 495]
