"""The auto-encoder of ratings: what is rated counts, and a batch is a step on ratings and one on the answer to them."""

import copy

import pytest
import torch
from torch import nn

from torchbenchmark.models.nvidia_deeprecommender import Model, masked_squared_error


@pytest.fixture
def model():
    """Without dropout, so that two computations of one thing give the same."""
    model = Model(test="train", device="cpu", preset="tiny", batch_size=4)
    model.module.dropout.p = 0.0
    return model


def test_a_batch_is_a_step_on_the_ratings_and_a_step_on_the_answer_to_them(model):
    network = copy.deepcopy(model.module)
    velocities = [torch.zeros_like(parameter) for parameter in network.parameters()]
    (given,) = model.example_inputs
    losses = []
    for step in range(2):
        answer = network(given)
        rated = given != 0
        loss = ((answer - given)[rated] ** 2).mean()
        losses.append(loss.detach())
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        with torch.no_grad():
            for parameter, velocity, gradient in zip(network.parameters(), velocities, gradients, strict=True):
                velocity.mul_(0.9).add_(gradient)
                parameter.sub_(0.005 * velocity)
        given = answer.detach()
        assert rated.float().mean() < 0.02 if step == 0 else rated.all()
    torch.testing.assert_close(model.train(), losses[0] + losses[1])
    for ours, theirs in zip(model.module.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_answer_for_what_is_not_rated_does_not_matter():
    ratings = torch.tensor([[5.0, 0.0, 1.0], [0.0, 0.0, 2.0]])
    answer = torch.tensor([[4.0, 7.0, 1.0], [9.0, -9.0, 4.0]])
    assert masked_squared_error(answer, ratings).item() == pytest.approx((1 + 0 + 4) / 3)


def test_the_network_is_the_papers_with_its_code_in_the_middle(model):
    shapes = [tuple(layer.weight.shape[::-1]) for layer in model.module.modules() if isinstance(layer, nn.Linear)]
    assert shapes == [(4096, 64), (64, 64), (64, 128), (128, 64), (64, 64), (64, 4096)]
    assert sum(isinstance(layer, nn.SELU) for layer in model.module.modules()) == len(shapes)
    code = model.module.encoder(*model.example_inputs)
    assert code.shape == (4, 128)
    torch.testing.assert_close(model.module.decoder(code), model.module(*model.example_inputs))


def test_four_fifths_of_the_code_are_dropped_in_training_alone():
    model = Model(test="train", device="cpu", preset="tiny", batch_size=64)
    seen = []
    model.module.dropout.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))
    model.invoke()
    (code, kept), _ = seen
    share = (kept == 0).float().mean().item()
    assert share == pytest.approx(0.8, abs=0.03)
    torch.testing.assert_close(kept[kept != 0], 5 * code[kept != 0])
    model.module.eval()
    model.module(*model.example_inputs)
    assert torch.equal(*seen[-1])


def test_ratings_are_sparse_whole_numbers_and_everybody_has_rated_something():
    model = Model(test="eval", device="cpu", preset="tiny")
    (ratings,) = model.example_inputs
    assert set(ratings.unique().tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    assert (ratings != 0).float().mean().item() == pytest.approx(0.01, abs=0.002)
    assert ((ratings != 0).sum(dim=1) > 0).all()


def test_there_is_no_staged_training(model):
    with pytest.raises(NotImplementedError, match=r"call train\(\)"):
        model.forward()
