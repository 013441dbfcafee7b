"""What is special to the speaker encoder: its loss, worked out by hand, and its recurrence, step by step."""

import math

import pytest
import torch
from torch.nn import functional

from torchbenchmark.models.tts_angular import AngularPrototypicalLoss, Model


def on_the_circle(*degrees):
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def test_the_loss_of_two_speakers_is_the_one_worked_out_by_hand():
    """Prototypes at 0 and 90 degrees, the means of two utterances each; queries at 30 and at 90."""
    embeddings = torch.stack([on_the_circle(-20, 20, 30), on_the_circle(80, 100, 90)])
    first = -math.log(math.exp(10 * math.cos(math.pi / 6)) / (math.exp(10 * math.cos(math.pi / 6)) + math.exp(5)))
    second = -math.log(math.exp(10) / (1 + math.exp(10)))
    loss = AngularPrototypicalLoss(2).double()(embeddings)
    assert loss.item() == pytest.approx((first + second) / 2, rel=1e-9)


def test_an_offset_of_the_scores_would_change_neither_loss_nor_gradient():
    scores = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    plain, shifted = (functional.cross_entropy(scores + offset, torch.arange(4)) for offset in (0.0, -5.0))
    torch.testing.assert_close(plain, shifted)
    torch.testing.assert_close(torch.autograd.grad(plain, scores), torch.autograd.grad(shifted, scores))


@pytest.mark.parametrize("preset", ["full", "head", "tiny"])
def test_every_speaker_has_an_utterance_to_compare_with_the_others(preset):
    model = Model(test="train", device="meta", preset=preset)
    assert model.example_inputs[0].shape[1] >= 2


@pytest.mark.parametrize("speakers", [1, 2, 8])
def test_the_loss_is_finite_and_compares_with_as_many_speakers_as_there_are(speakers):
    model = Model(test="train", device="cpu", preset="tiny", batch_size=speakers)
    same = functional.normalize(torch.ones(speakers, 3, 4), dim=-1)
    assert model.loss(same).item() == pytest.approx(math.log(speakers), abs=1e-6)
    assert model.invoke()[0].isfinite()


def test_the_scale_of_the_cosines_is_learned_by_the_same_optimizer():
    model = Model(test="train", device="cpu", preset="tiny")
    before = model.loss.scale.item()
    for _ in range(10):
        model.invoke()
    assert model.loss.scale.item() != before
    assert isinstance(model.get_optimizer(), torch.optim.RAdam)


def test_the_encoder_is_three_projected_recurrences_and_the_last_frame_on_the_sphere():
    module, (spectra,) = Model(test="eval", device="cpu", preset="tiny", batch_size=2).get_module()
    frames = list(spectra.unbind(dim=1))
    for layer in module.layers:
        weights = layer.recurrence
        state = memory = torch.zeros(2, weights.hidden_size)
        outputs = []
        for frame in frames:
            gates = frame @ weights.weight_ih_l0.T + weights.bias_ih_l0 + state @ weights.weight_hh_l0.T
            entry, keep, candidate, exit_ = (gates + weights.bias_hh_l0).chunk(4, dim=1)
            memory = keep.sigmoid() * memory + entry.sigmoid() * candidate.tanh()
            state = exit_.sigmoid() * memory.tanh()
            outputs.append(state @ layer.projection.weight.T)
        frames = outputs
    expected = frames[-1] / frames[-1].norm(dim=1, keepdim=True)
    torch.testing.assert_close(module(spectra), expected, rtol=1e-4, atol=1e-5)


def test_the_utterances_of_a_speaker_are_embedded_one_by_one():
    module, (spectra,) = Model(test="train", device="cpu", preset="tiny").get_module()
    embeddings = module(spectra)
    assert embeddings.shape == (8, 3, 32)
    torch.testing.assert_close(module(spectra[5]), embeddings[5])
