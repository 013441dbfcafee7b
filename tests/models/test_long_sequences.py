"""The models of long sequences: what is written here in a library's place computes what the library's does."""

import copy
import importlib

import numpy
import pytest
import torch
from torch.nn import functional

from torchbenchmark.models.hf_BigBird.block_sparse_attention import draw_random_blocks
from torchbenchmark.models.hf_Reformer.network import Reformer
from torchbenchmark.models.hf_Reformer.reversible import ReversibleLayer
from torchbenchmark.torchvision_guard import ensure_torchvision_importable

ensure_torchvision_importable()
transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def build(name, test="eval", **options):
    model = importlib.import_module(f"torchbenchmark.models.{name}").Model
    return model(test=test, device="cpu", preset="tiny", **options)


def test_longformer_computes_what_the_librarys_does_where_nothing_is_padding_or_global():
    model = build("hf_Longformer")
    theirs = transformers.LongformerForMaskedLM(copy.deepcopy(model.module.config)).eval()
    theirs.load_state_dict(model.module.state_dict())
    (ours,) = model.invoke()
    tokens = model.example_inputs["input_ids"]
    with torch.no_grad():
        expected = theirs(tokens, attention_mask=torch.ones_like(tokens)).logits
    torch.testing.assert_close(ours, expected)


def test_the_decoder_of_bart_computes_with_its_mask_what_it_does_without():
    model = build("hf_Bart")
    masked = model.invoke()[0]
    del model.example_inputs["decoder_attention_mask"]
    torch.testing.assert_close(masked, model.invoke()[0])


def test_the_decoder_of_bart_looks_back_alone():
    model = build("hf_Bart")
    before = model.invoke()[0]
    changed = model.example_inputs["decoder_input_ids"].clone()
    changed[:, -1] = (changed[:, -1] + 1) % 256
    model.example_inputs["decoder_input_ids"] = changed
    after = model.invoke()[0]
    torch.testing.assert_close(after[:, :-1], before[:, :-1])
    assert not torch.allclose(after[:, -1], before[:, -1])


def test_the_random_blocks_of_bigbird_are_others_than_those_attended_to_anyway_and_differ_by_head_and_layer():
    drawn = draw_random_blocks(heads=3, blocks=16, count=4, seed=0)
    assert drawn.shape == (3, 14, 4)
    for head in drawn.tolist():
        for block, chosen in enumerate(head, start=1):
            assert len(set(chosen)) == 4
            assert not set(chosen) & {0, block - 1, block, block + 1, 15}
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn, draw_random_blocks(3, 16, 4, seed=1))
    assert torch.equal(drawn, draw_random_blocks(3, 16, 4, seed=0))


def test_the_attention_of_bigbird_is_the_librarys_given_the_same_random_blocks():
    network = build("hf_BigBird").module
    ours = network.bert.encoder.layer[0].attention.self
    theirs = transformers.BigBirdForMaskedLM(copy.deepcopy(network.config)).bert.encoder.layer[0].attention.self
    theirs.load_state_dict(ours.state_dict())
    blocks = ours.gathered.view(ours.heads, ours.blocks - 2, ours.random) % ours.blocks
    theirs._bigbird_block_rand_mask_with_head = lambda **_: list(blocks.numpy())
    states = torch.randn(2, 96, 64)
    blocked, band, rows, columns = network.bert.create_masks_for_block_sparse_attn(torch.ones(2, 96), 8)
    before = numpy.random.get_state()
    try:
        expected, _ = theirs.eval()(states, band, rows, columns, blocked, blocked)
    finally:
        numpy.random.set_state(before)  # versions differ in whether they seed it in an inference
    torch.testing.assert_close(ours(states)[0], expected)


def test_a_training_step_of_bigbird_leaves_numpys_generator_alone():
    model = build("hf_BigBird", "train")
    before = numpy.random.get_state()[1].copy()
    model.invoke()
    assert (numpy.random.get_state()[1] == before).all()


@pytest.fixture
def reformers():
    """Ours and the library's, with the same weights and the rotations that the library draws by its seed."""
    sizes = build("hf_Reformer").shape["sizes"]
    ours = Reformer(sizes).eval()
    config = transformers.ReformerConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.width,
        num_attention_heads=sizes.heads,
        attention_head_size=sizes.head_width,
        feed_forward_size=sizes.inner,
        attn_layers=["local", "lsh"] * (sizes.layers // 2),
        local_attn_chunk_length=sizes.chunk,
        lsh_attn_chunk_length=sizes.chunk,
        num_buckets=sizes.buckets,
        axial_pos_shape=sizes.axes,
        axial_pos_embds_dim=sizes.axis_widths,
        max_position_embeddings=128,
        hidden_dropout_prob=0.0,
        local_attention_probs_dropout_prob=0.0,
        hash_seed=3,
    )
    theirs = transformers.ReformerForMaskedLM(config).eval()
    body = [value for name, value in theirs.named_parameters() if not name.startswith("lm_head")]
    values = [*body, theirs.lm_head.decoder.weight, theirs.lm_head.bias]
    for parameter, value in zip(ours.parameters(), values, strict=True):
        parameter.data.copy_(value.data)
    for layer in ours.layers[1::2]:
        drawn = torch.randn(
            sizes.heads, sizes.head_width, 1, sizes.buckets // 2, generator=torch.Generator().manual_seed(3)
        )
        layer.attention.rotations.copy_(drawn.squeeze(2))
    return ours, theirs


def test_reformer_computes_what_the_librarys_does(reformers):
    ours, theirs = reformers
    tokens = torch.randint(64, (2, 128))
    with torch.no_grad(), torch.random.fork_rng():
        torch.testing.assert_close(ours(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-4)


def test_the_gradients_of_reformers_reversible_layers_are_those_of_plain_differentiation_also_with_dropout(monkeypatch):
    model = build("hf_Reformer", "train")
    kept = [layer.draw_kept(torch.zeros(2, 128, 32)) for layer in model.module.layers]
    for layer, left in zip(model.module.layers, kept, strict=True):
        layer.draw_kept = lambda states, left=left: left
    monkeypatch.setattr("torchbenchmark.models.hf_Reformer.network.DROPOUT", 0.0)
    network, tokens, labels = model.module, model.example_inputs["input_ids"], model.labels

    first = second = network.tokens(tokens) + network.positions(2)
    for layer, left in zip(network.layers, kept, strict=True):
        first = first + layer.attend(second, left, None)[0]
        second = second + layer.transform(first, left)
    plain = network.head(network.norm(torch.cat([first, second], dim=-1)))
    loss = functional.cross_entropy(plain.flatten(0, 1), labels.flatten())
    expected = torch.autograd.grad(loss, list(network.parameters()))

    ours = model.forward()
    torch.testing.assert_close(ours, loss)
    for one, other in zip(torch.autograd.grad(ours, list(network.parameters())), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_the_reversible_layers_keep_no_activations_but_the_last_for_the_backward_pass():
    model = build("hf_Reformer", "train")
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        model.forward()
    widths = [tensor for tensor in kept if tensor.shape == (2, 128, 32) and tensor.dtype == torch.float32]
    assert len(widths) <= 4  # both streams, and around the embeddings
    assert any(isinstance(layer, ReversibleLayer) for layer in model.module.layers)


def test_hashed_attention_puts_equal_queries_into_the_same_bucket_and_opposite_ones_into_another():
    attention = build("hf_Reformer").module.layers[1].attention
    vectors = torch.randn(1, attention.heads, 5, attention.head_width)
    buckets = attention.bucket_of(vectors)
    assert torch.equal(buckets, attention.bucket_of(3 * vectors))
    assert not (buckets == attention.bucket_of(-vectors)).any()
    assert int(buckets.max()) < 16


@pytest.mark.parametrize("name", ["hf_Bart", "hf_BigBird", "hf_Longformer", "hf_Reformer"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_inference_in_sixteen_bits_is_near_that_in_thirty_two(name, dtype):
    model = build(name)
    expected = model.invoke()[0]
    model.cast(dtype)
    (ours, *_) = model.invoke()
    assert ours.dtype == dtype
    assert (ours.float() - expected).abs().mean() < 0.1 * expected.abs().mean()
