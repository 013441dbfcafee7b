"""The models of text in plain torch compute what torch's own layers and plain definitions give, and their data is what
it claims to be."""

import math

import pytest
import torch
from torch import nn

from torchbenchmark.families.inverse_square_root import follow_inverse_square_root, inverse_square_root
from torchbenchmark.families.sentence_lengths import sentence_lengths
from torchbenchmark.families.transformer import PostNormDecoderLayer, PostNormLayer, PreNormLayer, sinusoids
from torchbenchmark.models.attention_is_all_you_need_pytorch import Model as Translator
from torchbenchmark.models.attention_is_all_you_need_pytorch import sentences
from torchbenchmark.models.BERT_pytorch import Model as Bert
from torchbenchmark.models.BERT_pytorch import sentence_pairs
from torchbenchmark.models.fastNLP import Model as Classifier

WIDTH, INNER, HEADS = 16, 32, 4
SOURCE, TARGET = 6, 5


def randomized(module):
    """With biases and norms that do something."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def copy_attention(theirs, ours):
    parts = [ours.query, ours.key, ours.value]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        if ours.output.bias is None:
            theirs.in_proj_bias.zero_()
            theirs.out_proj.bias.zero_()
        else:
            theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
            theirs.out_proj.bias.copy_(ours.output.bias)


def copy_parts(theirs, ours, norms):
    for their_name, our_part in norms.items():
        getattr(theirs, their_name).load_state_dict(our_part.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward[3].state_dict())


def padding_of(length):
    """Of three sentences; the first is as long as the batch."""
    return torch.arange(length) >= torch.tensor([[length], [length - 1], [2]])


@pytest.mark.parametrize("layer", [PreNormLayer, PostNormLayer])
def test_a_layer_of_an_encoder_is_that_of_torch(layer):
    ours = randomized(layer(WIDTH, INNER, HEADS, dropout=0.1))
    first = layer is PreNormLayer
    theirs = nn.TransformerEncoderLayer(
        WIDTH,
        HEADS,
        INNER,
        activation=nn.GELU(approximate="tanh") if first else "relu",
        layer_norm_eps=1e-5 if first else 1e-6,
        batch_first=True,
        norm_first=first,
    ).eval()
    copy_attention(theirs.self_attn, ours.attention)
    copy_parts(theirs, ours, {"norm1": ours.attention_norm, "norm2": ours.feed_forward_norm})
    features, padding = torch.randn(3, SOURCE, WIDTH), padding_of(SOURCE)
    expected = theirs(features, src_key_padding_mask=padding)
    found = ours(features, ~padding.unsqueeze(1))
    torch.testing.assert_close(found[~padding], expected[~padding], rtol=1e-4, atol=1e-5)


def test_a_layer_of_the_decoder_is_that_of_torch():
    ours = randomized(PostNormDecoderLayer(WIDTH, INNER, HEADS, dropout=0.1))
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, layer_norm_eps=1e-6, batch_first=True).eval()
    copy_attention(theirs.self_attn, ours.attention)
    copy_attention(theirs.multihead_attn, ours.encoder_attention)
    norms = {"norm1": ours.attention_norm, "norm2": ours.encoder_attention_norm, "norm3": ours.feed_forward_norm}
    copy_parts(theirs, ours, norms)
    features, encoded = torch.randn(3, TARGET, WIDTH), torch.randn(3, SOURCE, WIDTH)
    padding, later = padding_of(SOURCE), torch.ones(TARGET, TARGET).triu(1) > 0
    expected = theirs(features, encoded, tgt_mask=later, memory_key_padding_mask=padding)
    found = ours(features, ~later.unsqueeze(0), encoded, ~padding.unsqueeze(1))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_layer_in_training_drops_a_tenth_of_what_each_sublayer_adds():
    layer = PostNormLayer(WIDTH, INNER, HEADS, dropout=0.1)
    rates = [part.p for part in layer.modules() if isinstance(part, nn.Dropout)]
    assert rates == [0.1] * 3  # of attention's shares, inside of the feed-forward network, after either


def test_positions_are_the_sines_and_cosines_of_the_paper():
    table = sinusoids(40, 8)
    for position in (0, 1, 39):
        for pair in range(4):
            angle = position / 10_000 ** (2 * pair / 8)
            assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


@pytest.mark.parametrize(
    ("model", "scale", "warm_up"), [(Bert, 1.0, 500), (Translator, 2.0, 128)], ids=["BERT_pytorch", "attention"]
)
def test_the_learning_rate_rises_in_a_line_from_the_first_step(model, scale, warm_up):
    model = model(test="train", device="cpu", preset="tiny", batch_size=1)
    (group,) = model.get_optimizer().param_groups
    width = model.shape["width"]
    for step in range(1, 4):
        assert group["lr"] == pytest.approx(scale * width**-0.5 * step * warm_up**-1.5)
        model.invoke()


def test_the_learning_rate_falls_with_the_root_of_the_step_after_the_warm_up():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=3 * inverse_square_root(1, warm_up=4))
    follow_inverse_square_root(optimizer, warm_up=4)
    rates = []
    for _ in range(9):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
    assert rates == pytest.approx([3 * step / 8 for step in range(1, 5)] + [3 / step**0.5 for step in range(5, 10)])


def test_a_learning_rate_that_was_set_to_zero_stays_there():
    model = Bert(test="train", device="cpu", preset="tiny", batch_size=1)
    (group,) = model.get_optimizer().param_groups
    group["lr"] = 0.0
    model.invoke()
    assert group["lr"] == 0.0


def test_lengths_of_sentences_are_the_quantiles_of_a_log_normal_distribution():
    lengths = sentence_lengths(1000, median=40, spread=0.25, shortest=25, longest=70)
    assert lengths == sorted(lengths) and lengths[0] == 25 and lengths[-1] == 70
    assert lengths[500] == 40
    assert lengths[841] == round(40 * math.exp(0.25))  # one standard deviation above the middle
    assert sentence_lengths(1, 40, 0.25, 25, 70) == [40]


@pytest.fixture(scope="module")
def pairs():
    torch.manual_seed(0)
    return sentence_pairs.make_sentence_pairs(400, tokens=64, vocabulary=1000)


def test_a_row_is_two_sentences_between_special_tokens(pairs):
    for tokens, labels, segments in zip(pairs.tokens, pairs.labels, pairs.segments, strict=True):
        words = torch.where(labels != sentence_pairs.NOT_PREDICTED, labels, tokens)
        filled = int((words != sentence_pairs.PADDING).sum())
        ends = (words == sentence_pairs.SEPARATOR).nonzero().flatten().tolist()
        assert words[0] == sentence_pairs.START
        assert ends == [filled // 2, filled - 1]
        assert segments.tolist() == [1] * (ends[0] + 1) + [2] * (ends[1] - ends[0]) + [0] * (64 - filled)
        assert (words[filled:] == sentence_pairs.PADDING).all()
        special = words < sentence_pairs.SPECIAL
        assert int(special[:filled].sum()) == 3


def test_of_the_words_fifteen_percent_are_predicted_and_most_of_these_masked(pairs):
    predicted = pairs.labels != sentence_pairs.NOT_PREDICTED
    words = (pairs.tokens >= sentence_pairs.SPECIAL) | predicted
    assert predicted.any(dim=1).all()
    first = torch.zeros_like(predicted)
    first[:, 1] = True
    share = predicted[words & ~first].float().mean()
    assert share.item() == pytest.approx(0.15, abs=0.01)
    masked = (pairs.tokens == sentence_pairs.MASK)[predicted].float().mean()
    kept = (pairs.tokens == pairs.labels)[predicted].float().mean()
    assert masked.item() == pytest.approx(0.8, abs=0.03) and kept.item() == pytest.approx(0.1, abs=0.03)
    assert not (pairs.tokens == sentence_pairs.MASK)[~predicted].any()


def test_the_loss_of_bert_is_that_of_next_sentences_of_both_kinds_and_of_the_predicted_words():
    model = Bert(test="train", device="cpu", preset="tiny", batch_size=5)
    model.module.eval()
    loss = model.forward()
    next_sentence, words = model.call_module()
    assert {0, 1} == set(model.pairs.is_next.tolist())
    of_pairs = [-row[answer] for row, answer in zip(next_sentence, model.pairs.is_next, strict=True)]
    of_words = [
        -words[row, place, model.pairs.labels[row, place]] for row, place in model.pairs.labels.nonzero().tolist()
    ]
    torch.testing.assert_close(loss, sum(of_pairs) / len(of_pairs) + sum(of_words) / len(of_words))
    torch.testing.assert_close(words.exp().sum(dim=2), torch.ones(5, 32))


def test_the_loss_of_bert_falls_over_twenty_steps_where_the_warm_up_is_short():
    model = Bert(test="train", device="cpu", preset="tiny")
    losses = torch.stack([model.invoke()[0] for _ in range(20)])
    assert losses[-5:].mean() < 0.95 * losses[:5].mean()


def test_what_bert_predicts_does_not_hang_on_padding():
    model = Bert(test="eval", device="cpu", preset="tiny", batch_size=2)
    (tokens, segments), network = model.example_inputs, model.module
    filled = int((tokens[0] != sentence_pairs.PADDING).sum())
    assert filled < tokens.shape[1]
    nn.init.normal_(network.word_embedding.weight)  # also of the padding, so that a look at it would show
    with torch.no_grad():
        before = network(tokens, segments)[1][0, :filled]
        nn.init.normal_(network.word_embedding.weight[sentence_pairs.PADDING])
        after = network(tokens, segments)[1][0, :filled]
    torch.testing.assert_close(before, after)


@pytest.fixture
def translator():
    return Translator(test="eval", device="cpu", preset="tiny", batch_size=3)


def test_a_word_is_scored_by_the_whole_source_and_the_words_before_it(translator):
    source, target = translator.example_inputs
    with torch.no_grad():
        before = translator.module(source, target)
        changed = target.clone()
        changed[2, 6] = sentences.SPECIAL + (changed[2, 6] - sentences.SPECIAL + 1) % 100
        after = translator.module(source, changed)
        same_row = (before[2] == after[2]).all(dim=1)
        assert same_row[:6].all() and not same_row[6:].any()
        assert torch.equal(before[:2], after[:2])
        changed = source.clone()
        changed[2, 6] = sentences.SPECIAL + (changed[2, 6] - sentences.SPECIAL + 1) % 100
        assert not (before[2] == translator.module(changed, target)[2]).all(dim=1).any()


def test_padding_after_a_source_changes_no_score(translator):
    source, target = translator.example_inputs
    padded = nn.functional.pad(source, (0, 4), value=sentences.PADDING)
    with torch.no_grad():
        torch.testing.assert_close(translator.module(padded, target), translator.module(source, target))


def test_the_loss_of_a_translation_is_the_sum_over_its_words_and_end_without_padding():
    model = Translator(test="train", device="cpu", preset="tiny")
    model.module.eval()
    probabilities = model.call_module().log_softmax(dim=2)
    _, target = model.example_inputs
    next_words = model.next_words.unflatten(0, target.shape)
    assert torch.equal(next_words[:, :-1], target[:, 1:])
    assert (next_words == sentences.END).sum(dim=1).tolist() == [1] * len(target)
    real = (next_words != sentences.PADDING).nonzero().tolist()
    assert len(real) < next_words.numel()
    expected = sum(-probabilities[row, place, next_words[row, place]] for row, place in real)
    torch.testing.assert_close(model.forward(), expected)


def test_sentences_begin_and_end_and_are_padded_to_the_longest():
    tokens = sentences.make_sentences(50, median=12, vocabulary=100)
    lengths = sentence_lengths(50, 12, sentences.SPREAD, sentences.SHORTEST, sentences.LONGEST)
    assert tokens.shape == (50, max(lengths) + 2)
    for row, length in zip(tokens.tolist(), lengths, strict=True):
        assert row[0] == sentences.START and row[length + 1] == sentences.END
        assert min(row[1 : length + 1]) >= sentences.SPECIAL
        assert set(row[length + 2 :]) <= {sentences.PADDING}


def test_a_text_is_classified_by_the_mean_of_its_words():
    model = Classifier(test="eval", device="cpu", preset="tiny", batch_size=20)
    (starts, words), network = model.example_inputs, model.module
    (scores,) = model.invoke()
    texts = words.tensor_split(starts[1:])
    assert len(texts) == 20 and len({len(text) for text in texts}) > 10
    for text, score in zip(texts, scores, strict=True):
        mean = network.embedding.weight[text].mean(dim=0)
        torch.testing.assert_close(score, network.classifier(mean))


def test_a_step_of_the_classifier_goes_through_the_whole_embedding():
    model = Classifier(test="train", device="cpu", preset="tiny", batch_size=2)
    model.invoke()
    gradient = model.module.embedding.weight.grad
    assert not gradient.is_sparse and gradient.shape == (5000, 64)
