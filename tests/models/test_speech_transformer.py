"""What is special to speech_transformer: its search against enumeration, its network against torch's own layers, its
schedule and its sentences."""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from torchbenchmark.models.speech_transformer import NO_CHARACTER, Model, lengths, random_sentences
from torchbenchmark.models.speech_transformer.beam_search import END, START, BeamSearch
from torchbenchmark.models.speech_transformer.network import Sizes, SpeechTransformer, sinusoids
from torchbenchmark.models.speech_transformer.schedule import WarmedUpRate


def build_network(vocabulary, seed=0):
    """With scores far enough apart for a search to have something to find."""
    torch.manual_seed(seed)
    sizes = Sizes(6, vocabulary, width=16, heads=2, inner=24, encoder_layers=2, decoder_layers=2, positions=16)
    network = SpeechTransformer(sizes).double().eval()
    nn.init.normal_(network.decoder.embedding.weight, std=0.7)
    return network


def utterances(count):
    torch.manual_seed(1)
    frames = torch.tensor([12, 9, 10][:count])
    return torch.randn(count, 12, 6, dtype=torch.float64), frames


@torch.no_grad()
def log_likelihood(network, features, frames, sentence):
    """Of a sentence up to its end, the network reading it from the start."""
    read = torch.tensor([[START, *sentence[:-1]]])
    gains = network(features, frames, read)[0].log_softmax(dim=1)
    total = 0.0
    for position, character in enumerate(sentence):
        total += gains[position, character].item()
        if character == END:
            break
    return total


@torch.no_grad()
def test_a_beam_that_holds_all_hypotheses_finds_the_likeliest_of_all_sentences():
    vocabulary, steps = 5, 3
    network = build_network(vocabulary)
    features, frames = utterances(2)
    sentences, likelihoods = BeamSearch(network, beam=vocabulary ** (steps - 1), steps=steps)(features, frames)
    for item in range(2):
        one = features[item : item + 1], frames[item : item + 1]
        everything = {}
        for sentence in itertools.product(range(vocabulary), repeat=steps):
            first_end = sentence.index(END) if END in sentence else steps
            if all(character == END for character in sentence[first_end:]):
                everything[sentence] = log_likelihood(network, *one, sentence)
        assert sum(math.exp(value) for value in everything.values()) == pytest.approx(1)
        best = sorted(everything, key=everything.get, reverse=True)[: vocabulary ** (steps - 1)]
        assert [tuple(sentence) for sentence in sentences[item].tolist()] == best
        expected = [everything[sentence] for sentence in best]
        assert likelihoods[item].tolist() == pytest.approx(expected, abs=1e-4)
        assert any(sentence[0] != END and sentence[1] == END for sentence in best[:10])


def naive_search(network, features, frames, vocabulary, beam, steps):
    """One hypothesis after the other, each read anew from its start in every step."""
    hypotheses = [(0.0, ())]
    for _ in range(steps):
        longer = []
        for likelihood, sentence in hypotheses:
            if END in sentence:
                longer.append((likelihood, (*sentence, END)))
                continue
            gains = network(features, frames, torch.tensor([[START, *sentence]]))[0, -1].log_softmax(dim=0)
            longer += [(likelihood + gains[next_].item(), (*sentence, next_)) for next_ in range(vocabulary)]
        hypotheses = sorted(longer, reverse=True)[:beam]
    return hypotheses


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_five_keeps_what_a_naive_search_keeps(seed):
    network = build_network(vocabulary=11, seed=seed)
    features, frames = utterances(3)
    sentences, likelihoods = BeamSearch(network, beam=5, steps=6)(features, frames)
    for item in range(3):
        naive = naive_search(network, features[item : item + 1], frames[item : item + 1], 11, beam=5, steps=6)
        assert [tuple(sentence) for sentence in sentences[item].tolist()] == [sentence for _, sentence in naive]
        assert likelihoods[item].tolist() == pytest.approx([likelihood for likelihood, _ in naive], abs=1e-4)


@torch.no_grad()
def test_the_network_computes_what_torchs_own_layers_do():
    network = build_network(vocabulary=11)
    for parameter in network.parameters():  # also norms and biases, which begin as nothing
        parameter.add_(0.1 * torch.randn_like(parameter))
    features, frames = utterances(3)
    characters = torch.randint(11, (3, 7))
    options = {"d_model": 16, "nhead": 2, "dim_feedforward": 24, "batch_first": True, "dtype": torch.float64}
    padding = torch.arange(12) >= frames[:, None]

    hidden = network.encoder.norm(network.encoder.projection(features)) + sinusoids(12, 16).double()
    for layer in network.encoder.layers:
        theirs = nn.TransformerEncoderLayer(**options).eval()
        copy_attention(layer.attention, theirs.self_attn)
        copy_rest(layer.feed_forward, [layer.attention_end, layer.feed_forward_end], theirs)
        hidden = theirs(hidden, src_key_padding_mask=padding)
    heard, hidden = hidden, 4 * network.decoder.embedding(characters) + sinusoids(7, 16).double()
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    for layer in network.decoder.layers:
        theirs = nn.TransformerDecoderLayer(**options).eval()
        copy_attention(layer.self_attention, theirs.self_attn)
        copy_attention(layer.attention, theirs.multihead_attn)
        ends = [layer.self_attention_end, layer.attention_end, layer.feed_forward_end]
        copy_rest(layer.feed_forward, ends, theirs)
        hidden = theirs(hidden, heard, tgt_mask=future, memory_key_padding_mask=padding)
    expected = hidden @ network.decoder.embedding.weight.T
    torch.testing.assert_close(network(features, frames, characters), expected, rtol=1e-5, atol=1e-5)


def copy_attention(ours, theirs):
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_rest(feed_forward, ends, theirs):
    theirs.linear1.load_state_dict(feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(feed_forward[2].state_dict())
    for number, end in enumerate(ends, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(end.norm.state_dict())


@torch.no_grad()
def test_what_follows_an_utterance_and_what_is_said_later_do_not_count():
    network = build_network(vocabulary=11)
    features, frames = utterances(3)
    characters = torch.randint(11, (3, 7))
    scores = network(features, frames, characters)
    louder = features.clone()
    for item in range(3):
        louder[item, frames[item] :] += 100
    torch.testing.assert_close(network(louder, frames, characters), scores)
    later = characters.clone()
    later[:, 5:] = (later[:, 5:] + 1) % 11
    changed = network(features, frames, later)
    torch.testing.assert_close(changed[:, :5], scores[:, :5])
    assert not torch.allclose(changed[:, 5:], scores[:, 5:])


def test_positions_are_sines_and_cosines_of_growing_periods():
    positions = sinusoids(50, 8)
    for column in range(8):
        angle = 37 / 10_000 ** ((column // 2) * 2 / 8)
        assert positions[37, column].item() == pytest.approx((math.cos if column % 2 else math.sin)(angle), abs=1e-5)


def test_the_rate_rises_to_the_end_of_the_warm_up_and_falls_with_the_square_root():
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    WarmedUpRate(optimizer, width=512, warm_up=4, factor=0.2)
    rates = []
    for _ in range(9):
        parameter.grad = torch.ones(1)
        before = parameter.item()
        optimizer.step()
        rates.append(before - parameter.item())
    expected = [0.2 * 512**-0.5 * min(step**-0.5, step * 4**-1.5) for step in range(1, 10)]
    assert rates == pytest.approx(expected, rel=1e-4)
    assert max(rates) == rates[3]


def test_the_full_size_trains_with_the_published_schedule():
    (group,) = Model(test="train", device="meta").get_optimizer().param_groups
    assert group["lr"] == pytest.approx(0.2 * 512**-0.5 * 4000**-1.5)


def test_sentences_end_where_their_length_says_and_are_read_one_character_late():
    read, targets = random_sentences(3, 9, vocabulary=20)
    assert lengths(3, 9).tolist() == [9, 8, 6]
    for item, length in enumerate((9, 8, 6)):
        said = targets[item, : length - 1]
        assert said.min() > END and said.max() < 20
        assert targets[item, length - 1] == END
        assert (targets[item, length:] == NO_CHARACTER).all()
        assert read[item, 0] == START
        assert torch.equal(read[item, 1:length], said)


def test_the_loss_is_the_smoothed_cross_entropy_of_what_is_said():
    model = Model(test="train", device="cpu", preset="tiny")
    model.module.eval()
    with torch.no_grad():
        loss = model.forward()
        gains = model.call_module().double().log_softmax(dim=2)
    terms = []
    for item, position in (model.targets != NO_CHARACTER).nonzero().tolist():
        gain = gains[item, position]
        terms.append(-(0.9 * gain[model.targets[item, position]] + 0.1 * gain.mean()).item())
    assert loss.item() == pytest.approx(sum(terms) / len(terms), rel=1e-5)


def multiplications(steps, frames=97, beam=5, width=512, inner=2048, characters=1014):
    """The encoder and what the decoder keeps of it, then in each step one character of each hypothesis, which attends
    to room for all steps."""
    encoder = frames * 320 * width + 6 * frames * (4 * width**2 + 2 * frames * width + 2 * width * inner)
    kept = 6 * frames * 2 * width**2
    itself, utterance = 4 * width**2 + 2 * steps * width, 2 * width**2 + 2 * frames * width
    step = beam * (6 * (itself + utterance + 2 * width * inner) + width * characters)
    return encoder + kept + steps * step


def test_a_search_reads_the_utterance_once_and_each_character_once():
    search, inputs = Model(test="eval", device="meta").get_module()
    assert (search.beam, search.steps) == (5, 100)
    with torch.device("meta"):
        short = BeamSearch(search.network, search.beam, steps=4)
    with FlopCounterMode(display=False) as counter:
        short(*inputs)
    assert counter.get_total_flops() / 2 == multiplications(steps=4)


@pytest.mark.long
@torch.no_grad()
def test_a_compiler_of_the_search_compiles_a_step_and_not_all_of_them():
    from torch._dynamo.testing import CompileCounter  # takes seconds, and no other test needs it

    features, frames = utterances(1)
    graphs = {}
    for steps in (4, 9):
        torch.compiler.reset()
        search, counter = BeamSearch(build_network(vocabulary=7), beam=2, steps=steps), CompileCounter()
        expected = search(features, frames)
        for ours, theirs in zip(torch.compile(search, backend=counter)(features, frames), expected, strict=True):
            torch.testing.assert_close(ours, theirs)
        graphs[steps] = counter.frame_count, counter.op_count
    assert graphs[4] == graphs[9]
