"""What is special to demucs: lengths, the network against one written naively, and the changes of the sources."""

import pytest
import torch
from torch import nn

from torchbenchmark.models.demucs import Model, network, random_streams
from torchbenchmark.models.demucs.augmentation import REMIXED, Augmentation
from torchbenchmark.models.demucs.network import Demucs, centre, input_length, separation_loss


def lengths(samples, levels):
    """Behind each level of the encoder and then of the decoder, and whether each convolution had full windows only."""
    seen, full = [samples], True
    for _ in range(levels):
        full = full and (seen[-1] - 8) % 4 == 0
        seen.append((seen[-1] - 8) // 4 + 1)
    for _ in range(levels):
        full = full and seen[-1] >= 3
        seen.append((seen[-1] - 3) * 4 + 8)
    return seen, full


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("samples", [1, 50, 333, 1000])
def test_the_input_length_is_the_shortest_that_serves(samples, levels):
    def serves(length):
        seen, full = lengths(length, levels)
        return full and seen[-1] >= samples

    assert input_length(samples, levels) == next(length for length in range(8, 10_000) if serves(length))


def test_a_song_of_version_one_is_as_long_as_80000_samples_of_estimates_and_the_shift_need():
    shape = Model.PRESETS["full"].shape
    assert input_length(80_000, shape["levels"]) == shape["samples"] - shape["shift"] == 91_476


def test_the_estimates_are_as_long_as_the_convolutions_leave_them():
    model = Model(test="eval", device="meta")
    (estimates,) = model.invoke()
    seen, full = lengths(91_476, 6)
    assert full
    assert estimates.shape == (4, 4, 2, seen[-1]) == (4, 4, 2, 80_556)


def test_the_published_network_has_the_published_size_of_a_file():
    with torch.device("meta"):
        module = Demucs(sources=4, channels=64, levels=6, recurrent_layers=2)
    assert sum(parameter.numel() for parameter in module.parameters()) * 4 / 2**20 == pytest.approx(1014, abs=1)


def convolve(signal, layer):
    """Window by window."""
    windows = signal.unfold(2, layer.kernel_size[0], layer.stride[0])
    return torch.einsum("bctk,ock->bot", windows, layer.weight) + layer.bias[:, None]


def spread(signal, layer):
    """What the transposed convolution does: each feature adds its kernel to the samples below it."""
    batch, _, length = signal.shape
    out = torch.zeros(batch, layer.out_channels, (length - 1) * 4 + 8, dtype=signal.dtype)
    for position in range(length):
        out[:, :, 4 * position : 4 * position + 8] += torch.einsum("bc,cok->bok", signal[:, :, position], layer.weight)
    return out + layer.bias[:, None]


def gate(signal):
    kept, opened = signal.chunk(2, dim=1)
    return kept * opened.sigmoid()


def test_the_network_computes_what_the_paper_draws():
    torch.manual_seed(0)
    module = Demucs(sources=2, channels=3, levels=2, recurrent_layers=2).double()
    recordings = torch.randn(2, 2, input_length(60, 2), dtype=torch.float64)
    features, skipped = recordings, []
    for level in module.encoder:
        wide, doubled = (layer for layer in level if isinstance(layer, nn.Conv1d))
        features = gate(convolve(convolve(features, wide).clamp(min=0), doubled))
        skipped.append(features)
    features = module.narrowing(module.recurrence(features.mT)[0]).mT
    for level, narrow in zip(module.decoder, (3, 4), strict=True):
        skip = skipped.pop()
        left = (skip.shape[2] - features.shape[2]) // 2
        features = features + skip[:, :, left : left + features.shape[2]]
        features = spread(gate(convolve(features, level[0])), level[2])
        assert features.shape[1] == narrow
        if skipped:
            features = features.clamp(min=0)
    torch.testing.assert_close(module(recordings), features.view(2, 2, 2, -1))


def test_the_first_weights_are_half_way_to_the_reference_deviation(monkeypatch):
    torch.manual_seed(0)
    scaled = Demucs(sources=2, channels=3, levels=2, recurrent_layers=1).encoder[1][0]
    monkeypatch.setattr(network, "scale_first_weights", lambda _: None)
    torch.manual_seed(0)
    plain = Demucs(sources=2, channels=3, levels=2, recurrent_layers=1).encoder[1][0]
    wanted = (plain.weight.std() * 0.1).sqrt()
    torch.testing.assert_close(scaled.weight.std(), wanted)
    torch.testing.assert_close(scaled.bias, plain.bias * wanted / plain.weight.std())


def test_the_middle_of_a_signal_leaves_out_as_much_on_both_sides():
    assert centre(torch.arange(9), 5).tolist() == [2, 3, 4, 5, 6]
    assert centre(torch.arange(9), 6).tolist() == [1, 2, 3, 4, 5, 6]


def test_the_loss_compares_with_the_middle_of_the_sources():
    sources = torch.arange(8.0).expand(1, 4, 2, 8)
    assert separation_loss(sources[..., 2:6] + 3, sources).item() == 3
    assert separation_loss(sources[..., 1:5], sources).item() == 1


SHIFT, SAMPLES, SONGS = 50, 300, 6


@pytest.fixture
def changed():
    """Sources in which each sample says where it stood, and what became of them."""
    torch.manual_seed(3)
    places = torch.arange(1, SONGS * 4 * 2 * SAMPLES + 1, dtype=torch.float64).view(SONGS, 4, 2, SAMPLES)
    return places, Augmentation(SHIFT, SAMPLES, SONGS)(places)


def found(places, value):
    return [index.item() for index in (places == value.abs()).nonzero()[0]]


def test_each_source_becomes_a_stretch_of_one_source_with_one_sign_and_both_ears(changed):
    places, sources = changed
    assert sources.shape == (SONGS, 4, 2, SAMPLES - SHIFT)
    seen = {"song": set(), "begin": set(), "sign": set(), "exchanged": set()}
    for song in range(SONGS):
        for part in range(4):
            origin, same, ear, begin = found(places, sources[song, part, 0, 0])
            sign = sources[song, part, 0, 0].sign()
            stretch = places[origin, part, :, begin : begin + SAMPLES - SHIFT]
            assert same == part and begin < SHIFT
            assert torch.equal(sources[song, part], sign * (stretch.flip(0) if ear else stretch))
            seen["begin"].add(begin), seen["sign"].add(sign.item()), seen["exchanged"].add(ear)
            seen["song"].add(origin - song)
    assert len(seen["begin"]) > 10 and seen["sign"] == {-1, 1} and seen["exchanged"] == {0, 1}
    assert len(seen["song"]) > 2


def test_sources_are_exchanged_within_groups_of_four_songs_and_none_is_lost(changed):
    places, sources = changed
    origins = torch.tensor(
        [[found(places, sources[song, part, 0, 0])[0] for part in range(4)] for song in range(SONGS)]
    )
    for begin in range(0, SONGS, REMIXED):
        group = list(range(begin, min(begin + REMIXED, SONGS)))
        for part in range(4):
            assert sorted(origins[group, part].tolist()) == group


def test_every_order_of_four_songs_is_drawn_as_often():
    torch.manual_seed(0)
    augmentation = Augmentation(1, 2, 4)
    songs = torch.arange(4.0).view(4, 1, 1, 1).expand(4, 200, 2, 2)
    orders = torch.cat([augmentation(songs)[:, :, 0, 0].abs().T for _ in range(12)])
    _, counts = orders.unique(dim=0, return_counts=True)
    assert len(counts) == 24
    assert ((counts - 100) ** 2 / 100).sum() < 50  # chi-squared of 23 degrees: one in a thousand


def test_a_training_step_mixes_new_songs_each_time_and_an_inference_hears_the_recording():
    model = Model(test="train", device="cpu", preset="tiny")
    module, (streams,) = model.get_module()
    heard = []
    module.network.register_forward_pre_hook(lambda _, inputs: heard.append(inputs[0]))
    (_, first), (_, second) = module(streams), module(streams)
    assert not torch.equal(first, second)
    torch.testing.assert_close(heard[0], first.sum(dim=1))
    _, sources = module.eval()(streams)
    torch.testing.assert_close(heard[-1], sources.sum(dim=1), rtol=1e-4, atol=1e-5)
    assert torch.equal(heard[-1], streams[:, 0, :, : -model.shape["shift"]])


def test_a_recording_is_the_sum_of_its_sources():
    streams = random_streams(2, 100)
    torch.testing.assert_close(streams[:, 0], streams[:, 1:].sum(dim=1))
    assert streams[:, 1:].flatten(0, 2).std(dim=1).min() > 0.3
