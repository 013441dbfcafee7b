"""The inside algorithm and the grammar that it trains: held against the trees of small sentences, written out one by
one."""

import itertools
import math

import pytest
import torch

from torchbenchmark.models.pytorch_struct import LARGEST_GRADIENT, Model
from torchbenchmark.models.pytorch_struct.inside import join, log_partition

NONTERMINALS, TERMINALS = 2, 3
SYMBOLS = range(NONTERMINALS + TERMINALS)


def random_grammar(sentences, words):
    """Scores that are no logarithms of distributions: the algorithm has to add up any."""
    torch.manual_seed(3)
    count = len(SYMBOLS)
    return (
        torch.randn(sentences, words, TERMINALS, dtype=torch.float64),
        torch.randn(NONTERMINALS, count, count, dtype=torch.float64),
        torch.randn(NONTERMINALS, dtype=torch.float64),
    )


def trees(symbol, words, rules):
    """The score of each tree of `symbol` over `words`, which is a list of the scores of a word by terminal."""
    if symbol >= NONTERMINALS:
        if len(words) == 1:
            yield words[0][symbol - NONTERMINALS]
        return
    for split in range(1, len(words)):
        for left, right in itertools.product(SYMBOLS, repeat=2):
            for one in trees(left, words[:split], rules):
                for other in trees(right, words[split:], rules):
                    yield rules[symbol][left][right] + one + other


def enumerated(words, rules, roots):
    """Summed probability of all trees, and how many there are."""
    scores = [roots[symbol] + score for symbol in range(NONTERMINALS) for score in trees(symbol, words, rules.tolist())]
    return math.log(math.fsum(map(math.exp, scores))), len(scores)


@pytest.mark.parametrize(("words", "binary_trees"), [(2, 1), (3, 2), (4, 5), (5, 14)])
def test_the_log_partition_is_the_sum_over_all_trees(words, binary_trees):
    scores, rules, roots = random_grammar(2, words)
    found = log_partition(scores, rules, roots, torch.tensor([words, words]))
    for sentence in range(2):
        expected, count = enumerated(scores[sentence].tolist(), rules, roots.tolist())
        assert count == binary_trees * NONTERMINALS ** (words - 1) * TERMINALS**words
        assert found[sentence].item() == pytest.approx(expected, rel=1e-12)


def test_what_stands_after_a_sentence_does_not_count():
    scores, rules, roots = random_grammar(4, 6)
    lengths = torch.tensor([2, 3, 5, 6])
    found = log_partition(scores, rules, roots, lengths)
    for sentence, length in enumerate(lengths.tolist()):
        alone = log_partition(scores[sentence : sentence + 1, :length], rules, roots, lengths[sentence : sentence + 1])
        assert found[sentence].item() == pytest.approx(alone.item(), rel=1e-12)
    gradient = torch.autograd.grad(log_partition(scores.requires_grad_(), rules, roots, lengths)[0], scores)[0]
    assert (gradient[0, :2] != 0).all() and (gradient[0, 2:] == 0).all() and (gradient[1:] == 0).all()


def test_its_gradient_by_the_words_is_the_posterior_of_their_terminals():
    """Each tree has one terminal over each word, so that over each word the probabilities add up to 1."""
    scores, rules, roots = random_grammar(2, 7)
    value = log_partition(scores.requires_grad_(), rules, roots, torch.tensor([7, 7])).sum()
    (posterior,) = torch.autograd.grad(value, scores)
    torch.testing.assert_close(posterior.sum(dim=2), torch.ones(2, 7, dtype=torch.float64))
    assert (posterior > 0).all()


def test_its_gradients_are_those_of_finite_differences():
    inputs = [tensor.requires_grad_() for tensor in random_grammar(2, 5)]
    assert torch.autograd.gradcheck(lambda *tensors: log_partition(*tensors, torch.tensor([4, 5])), inputs)


def test_a_sum_that_is_too_small_for_its_numbers_keeps_value_and_gradient_finite():
    left = torch.tensor([0.0, -200.0]).reshape(1, 1, 1, 2).requires_grad_()
    right = torch.zeros(1, 1, 1, 1)
    rules = torch.tensor([[0.0], [1.0]])  # only the symbol that is improbable has a rule
    result = join(left, right, rules)
    result.sum().backward()
    assert result.isfinite().all() and left.grad.isfinite().all()


def test_long_improbable_sentences_do_not_underflow():
    """By itself a probability of e^-3000 is 0, in any type."""
    scores, rules, roots = (tensor.float() for tensor in random_grammar(1, 30))
    near = log_partition(scores, rules, roots, torch.tensor([30]))
    far = log_partition(scores - 100, rules, roots, torch.tensor([30]))
    torch.testing.assert_close(far, near - 3000)


def test_the_grammar_of_the_model_has_distributions_of_rules_words_and_roots():
    """So the probabilities of all sentences of two words add up to that of a tree of two words."""
    network = Model(test="eval", device="cpu", preset="tiny").module.double()
    vocabulary = network.words.shape[0]
    pairs = torch.cartesian_prod(torch.arange(vocabulary), torch.arange(vocabulary))
    with torch.no_grad():
        probability = network(pairs, torch.full((len(pairs),), 2)).double().exp().sum()
        rules = (network.nonterminals @ network.child_pairs.t()).softmax(dim=1)
        roots = (network.start @ network.root_layers(network.roots).t()).softmax(dim=1)
        nonterminals = len(network.nonterminals)
        of_two_terminals = rules.unflatten(1, (network.symbols, -1))[:, nonterminals:, nonterminals:].sum(dim=(1, 2))
    torch.testing.assert_close(probability, (roots @ of_two_terminals).squeeze(), rtol=1e-4, atol=0)


def test_a_step_scales_its_gradients_down_to_the_largest_norm():
    model = Model(test="train", device="cpu", preset="tiny")
    parameters = list(model.module.parameters())
    (1e3 * model.forward()).backward()
    before = torch.cat([parameter.grad.flatten() for parameter in parameters])
    model.optimizer_step()
    after = torch.cat([parameter.grad.flatten() for parameter in parameters])
    assert before.norm() > LARGEST_GRADIENT
    torch.testing.assert_close(after, before * (LARGEST_GRADIENT / before.norm()), rtol=1e-4, atol=1e-7)


def test_the_batch_is_a_hundred_sentences_of_6_to_29_words():
    model = Model(test="train", device="meta")
    assert model.example_inputs[0].shape == (100, 29)
    lengths = Model(test="train", device="cpu").example_inputs[1]
    assert lengths.shape == (100,) and lengths.min() == 6 and lengths.max() == 29
    assert 12 <= lengths.median() <= 16
