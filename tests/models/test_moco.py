"""What is special to MoCo: a queue that rolls, a key network that follows, and true pairs against the queue."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.models.moco import KEY_MOMENTUM, TEMPERATURE, Model


@pytest.fixture
def model():
    return Model(test="train", device="cpu", preset="tiny")


def snapshot(module):
    return [tensor.detach().clone() for tensor in module.parameters()]


def numbered(first, count):
    """Keys that can be told apart."""
    return torch.arange(first, first + count, dtype=torch.float32)[:, None].expand(count, 16)


def test_keys_replace_the_oldest_ones_and_go_round(model):
    contrast = model.contrast
    naive = [None] * 256
    position = 0
    for step in range(8):
        contrast.enqueue(numbered(100 * step, 50))
        for key in range(50):
            naive[position] = 100 * step + key
            position = (position + 1) % 256
    assert contrast.queue[:, 0].tolist() == naive
    assert torch.equal(contrast.queue[:, 0], contrast.queue[:, -1])
    assert contrast.oldest.item() == position == 400 % 256


def test_of_more_keys_than_places_the_last_stay(model):
    model.contrast.enqueue(numbered(0, 300))
    assert sorted(model.contrast.queue[:, 0].tolist()) == list(range(44, 300))


def test_a_step_puts_its_keys_into_the_queue_and_moves_its_end(model):
    before = model.contrast.queue.clone()
    model.invoke()
    first_keys = model.keys
    model.invoke()
    assert torch.equal(model.contrast.queue[:4], first_keys)
    assert torch.equal(model.contrast.queue[4:8], model.keys)
    assert torch.equal(model.contrast.queue[8:], before[8:])
    assert model.contrast.oldest.item() == 8
    torch.testing.assert_close(model.keys.norm(dim=1), torch.ones(4))


def test_the_key_network_begins_equal_and_follows_by_momentum_after_the_step(model):
    query, key = model.contrast.query_network, model.contrast.key_network
    assert all(torch.equal(one, other) for one, other in zip(query.parameters(), key.parameters(), strict=True))
    with torch.no_grad():  # far away, for the distance after one small step would be lost in rounding
        for weight in key.parameters():
            weight.add_(1.0)
    before = snapshot(key)
    model.invoke()
    for was, now, followed in zip(before, key.parameters(), query.parameters(), strict=True):
        torch.testing.assert_close(now, KEY_MOMENTUM * was + (1 - KEY_MOMENTUM) * followed)
        assert not torch.equal(now, was)
        assert now.grad is None


def test_only_the_query_network_is_trained_and_all_of_it(model):
    held = {id(parameter) for group in model.optimizer.param_groups for parameter in group["params"]}
    assert held == {id(parameter) for parameter in model.contrast.query_network.parameters()}
    model.invoke()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.contrast.query_network.parameters())


def test_the_loss_is_that_of_the_paper_query_by_query():
    model = Model(test="eval", device="cpu", preset="tiny", batch_size=3)
    first, second = model.example_inputs
    logits, keys = model.invoke()
    with torch.no_grad():
        query = functional.normalize(model.contrast.query_network(first))
        key = functional.normalize(model.contrast.key_network(second))
    torch.testing.assert_close(keys, key)
    for row in range(3):
        true = (query[row] @ key[row] / TEMPERATURE).exp()
        others = sum((query[row] @ other / TEMPERATURE).exp() for other in model.contrast.queue)
        loss = functional.cross_entropy(logits[row : row + 1], torch.zeros(1, dtype=torch.long))
        torch.testing.assert_close(loss, -(true / (true + others)).log())


def test_shuffled_keys_come_back_in_the_order_of_the_images(model):
    """A network without statistics gives every image the same key in any order."""
    model.contrast.key_network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 16))
    seen = []
    model.contrast.key_network.register_forward_hook(lambda module, args, output: seen.append(args[0].clone()))
    _, images = model.example_inputs
    torch.manual_seed(3)
    keys = model.contrast.encode_keys(images)
    torch.testing.assert_close(keys, model.contrast.key_network(images))
    assert not torch.equal(seen[0], images)
    assert sorted(seen[0].flatten(1).sum(dim=1).tolist()) == sorted(images.flatten(1).sum(dim=1).tolist())


def test_the_two_views_show_the_same_images_differently(model):
    first, second = model.example_inputs
    noise = second - first.flip(3)
    assert noise.std().item() == pytest.approx(0.5, rel=0.05)
    assert not torch.equal(first, second)


def test_an_inference_leaves_queue_and_key_network_alone():
    model = Model(test="eval", device="cpu", preset="tiny")
    before = [tensor.clone() for tensor in model.contrast.state_dict().values()]
    model.invoke()
    assert all(torch.equal(was, now) for was, now in zip(before, model.contrast.state_dict().values(), strict=True))


def test_a_query_learns_to_find_its_key():
    """Against a queue that is kept, the loss falls."""
    model = Model(test="train", device="cpu", preset="tiny")
    model.contrast.enqueue = lambda keys: None
    with torch.no_grad():
        model.contrast.queue.copy_(functional.normalize(model.contrast.query_network(torch.randn(256, 3, 32, 32))))
    curve = [model.invoke()[0].item() for _ in range(40)]
    assert sum(curve[-5:]) < 0.8 * sum(curve[:5])
