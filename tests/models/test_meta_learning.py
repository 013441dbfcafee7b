"""What is special to meta-learning: gradients through gradients, and an adaptation that leaves no trace."""

import copy
import importlib

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.families.meta_learning import BatchNormalization, MetaLearner, random_tasks

RATE = 0.4
both_models = pytest.mark.parametrize("name", ["maml", "maml_omniglot"])


def build(name, test="train", **options):
    module = importlib.import_module(f"torchbenchmark.models.{name}")
    return module.Model(test=test, device="cpu", preset="tiny", **options)


def softmax_regression(steps, inputs=3, classes=4):
    torch.manual_seed(5)
    return MetaLearner(nn.Linear(inputs, classes, bias=False).double(), RATE, steps)


def regression_tasks(tasks=2, images=5, inputs=3, classes=4):
    support, queries = torch.randn(2, tasks, images, inputs, dtype=torch.float64)
    labels, query_labels = torch.randint(classes, (2, tasks, images))
    return support, labels, queries, query_labels


def gradient_and_hessian(weights, inputs, labels):
    """Of the cross-entropy of softmax regression, over the flattened weights, from the textbook."""
    classes = len(weights)
    gradient = torch.zeros_like(weights)
    hessian = torch.zeros(weights.numel(), weights.numel(), dtype=weights.dtype)
    for one, label in zip(inputs, labels, strict=True):
        share = (weights @ one).softmax(dim=0)
        error = share - torch.eye(classes, dtype=weights.dtype)[label]
        gradient += torch.outer(error, one) / len(inputs)
        curvature = torch.diag(share) - torch.outer(share, share)
        hessian += torch.kron(curvature, torch.outer(one, one)) / len(inputs)
    return gradient.flatten(), hessian


def meta_gradient_by_hand(weights, support, labels, queries, query_labels, steps):
    """Back through each step w' = w - rate * g(w), whose derivative is 1 - rate * H(w)."""
    total = torch.zeros(weights.numel(), dtype=weights.dtype)
    for task in range(len(support)):
        adapted, hessians = weights, []
        for _ in range(steps):
            gradient, hessian = gradient_and_hessian(adapted, support[task], labels[task])
            adapted = adapted - RATE * gradient.view_as(weights)
            hessians.append(hessian)
        back, _ = gradient_and_hessian(adapted, queries[task], query_labels[task])
        for hessian in reversed(hessians):
            back = back - RATE * hessian @ back
        total += back / len(support)
    return total.view_as(weights)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_meta_gradient_is_that_derived_by_hand_with_its_second_derivatives(steps):
    learner = softmax_regression(steps)
    support, labels, queries, query_labels = regression_tasks()
    answers = learner(support, labels, queries)
    functional.cross_entropy(answers.flatten(0, 1), query_labels.flatten()).backward()
    expected = meta_gradient_by_hand(learner.network.weight.detach(), support, labels, queries, query_labels, steps)
    torch.testing.assert_close(learner.network.weight.grad, expected)


def adapted_by_an_optimizer(learner, images, labels):
    network = copy.deepcopy(learner.network)
    optimizer = torch.optim.SGD(network.parameters(), lr=learner.rate)
    for _ in range(learner.steps):
        optimizer.zero_grad()
        functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
    return network


@pytest.mark.parametrize("training", [True, False])
def test_an_adaptation_is_what_steps_of_sgd_make_of_a_copy(training):
    learner = build("maml").get_module()[0].double().train(training)
    tasks = random_tasks(1, ways=5, shots=1, queries=1, side=28)
    images, labels = tasks.support[0].double(), tasks.support_labels[0]
    weights = learner.adapt(images, labels)
    expected = adapted_by_an_optimizer(learner, images, labels)
    for name, parameter in expected.named_parameters():
        torch.testing.assert_close(weights[name], parameter)
        assert not torch.equal(parameter, dict(learner.network.named_parameters())[name])


def test_only_in_training_an_adaptation_has_a_graph():
    learner = softmax_regression(steps=2)
    support, labels, _, _ = regression_tasks()
    assert learner.adapt(support[0], labels[0])["weight"].grad_fn is not None
    learner.eval()
    assert learner.adapt(support[0], labels[0])["weight"].grad_fn is None
    with torch.no_grad():
        assert learner.adapt(support[0], labels[0])["weight"].grad_fn is None
        assert learner(support, labels, support).grad_fn is None


def test_an_inference_adapts_to_each_task_and_leaves_the_weights_and_their_gradients_alone():
    model = build("maml", "eval", batch_size=2)
    learner, (support, labels, queries) = model.get_module()
    before = {name: tensor.clone() for name, tensor in learner.state_dict().items()}
    (answers,) = model.invoke()
    for task in range(2):
        expected = adapted_by_an_optimizer(learner, support[task], labels[task])(queries[task])
        torch.testing.assert_close(answers[task], expected, rtol=1e-3, atol=1e-4)
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.state_dict().items())
    assert all(parameter.grad is None for parameter in learner.parameters())


@both_models
def test_the_answers_to_one_task_do_not_depend_on_the_others(name):
    learner, inputs = build(name, batch_size=3).get_module()
    together = learner(*inputs)
    alone = learner(*(tensor[1:2] for tensor in inputs))
    torch.testing.assert_close(together[1:2], alone)


@both_models
def test_at_full_size_training_adapts_in_five_steps_to_thirty_two_tasks(name):
    model = importlib.import_module(f"torchbenchmark.models.{name}").Model(test="train", device="meta", preset="full")
    support, labels, queries = model.example_inputs
    assert model.module.steps == 5
    assert support.shape == (32, 5, 1, 28, 28) and labels.shape == (32, 5)
    assert queries.shape == (32, 75, 1, 28, 28) and model.query_labels.shape == (32, 75)


def test_an_inference_of_maml_at_full_size_adapts_to_one_task_in_ten_steps():
    from torchbenchmark.models.maml import Model

    model = Model(test="eval", device="meta", preset="full")
    assert model.module.steps == 10 and model.batch_size == 1


@pytest.mark.parametrize("training", [True, False])
def test_batches_are_normalized_by_their_own_statistics(training):
    layer = BatchNormalization(2).train(training)
    images = 3 + 5 * torch.randn(4, 2, 3, 3)
    expected = torch.empty_like(images)
    for channel in range(2):
        values = images[:, channel]
        expected[:, channel] = (values - values.mean()) / (values.var(unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(layer(images), expected)
    assert list(layer.buffers()) == []


def test_images_of_a_task_show_their_classes_and_are_labelled_so():
    tasks = random_tasks(3, ways=5, shots=1, queries=4, side=28)
    for task in range(3):
        assert tasks.support_labels[task].tolist() == [0, 1, 2, 3, 4]
        assert tasks.query_labels[task].bincount().tolist() == [4] * 5
        distance = torch.cdist(tasks.queries[task].flatten(1), tasks.support[task].flatten(1))
        assert torch.equal(distance.argmin(dim=1), tasks.query_labels[task])
