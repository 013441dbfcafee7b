"""Every model keeps the contracts at the size `tiny` on the CPU; at the size `full`, on the meta device, it is what was
published."""

import importlib
import subprocess
import sys

import pytest
import torch
from e2e.slow_build import SLOWED_MODELS
from models.contract_cases import case_of, what_is_broken
from models.thirds import in_turns, today
from published import PUBLISHED
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from torchbenchmark.contracts import places
from torchbenchmark.contracts.contract import NotJudged
from torchbenchmark.contracts.watching import watch
from torchbenchmark.model import BenchmarkModel, as_tensors
from torchbenchmark.registry import Registry, load_suite

MODELS = tuple(Registry().models)
TESTS = ("train", "eval")

every_model = pytest.mark.parametrize("name", in_turns(MODELS))
every_test = pytest.mark.parametrize("test", TESTS)
every_published_model = pytest.mark.parametrize("name", in_turns(PUBLISHED))


def model_class(name):
    return importlib.import_module(f"torchbenchmark.models.{name}").Model


def build(name, test="train", device="cpu", preset="tiny", **options):
    return model_class(name)(test=test, device=device, preset=preset, **options)


def test_a_model_is_used_the_way_upstream_uses_it():
    from torchbenchmark.models.resnet18 import Model

    model = Model(test="eval", device="cpu", batch_size=None)
    module, inputs = model.get_module()
    assert isinstance(module, nn.Module)
    (output,) = model.invoke()
    torch.testing.assert_close(module(*inputs), output)
    assert output.shape == (1, 1000)


@every_model
@every_test
def test_a_model_keeps_its_contracts(name, test):
    assert what_is_broken(case_of(name, test, "cpu", "tiny")) == {}


FIRST_INFERENCES = """
import importlib, os, sys
import torch
for name in sys.argv[1:]:
    if os.fork() == 0:
        model = importlib.import_module(f"torchbenchmark.models.{name}").Model
        before = set(sys.modules)
        model(test="eval", device="cpu", preset="tiny").invoke()
        late = {"torch._dynamo", "torch._inductor", "torch.distributed"} & (sys.modules.keys() - before)
        print(name, *late, flush=True)
        os._exit(0)
    os.wait()
"""


def test_what_takes_long_to_import_is_there_before_the_first_inference():
    """What is imported with the model is imported once, in the zygote; the rest is part of its first batch."""
    models = {name: Registry().model(name).metadata for name in today(MODELS)}
    # timm and transformers bring all of it
    names = [name for name, model in models.items() if "eval" in model.tests and not model.requires]
    ended = subprocess.run([sys.executable, "-c", FIRST_INFERENCES, *names], capture_output=True, text=True, check=True)
    assert ended.stdout.split("\n")[:-1] == names, ended.stderr


@every_model
@every_test
def test_the_operations_of_an_iteration_can_be_counted(name, test):
    """The counter hooks the modules' inputs, which it refuses where a backward pass computes a network again."""
    if test not in Registry().model(name).metadata.tests:
        pytest.skip(f"{name} has no test {test!r}")
    model = build(name, test)
    with FlopCounterMode(display=False) as counter:
        model.invoke()
    assert counter.get_total_flops() >= 0


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
@every_test
def test_at_the_full_size_too_all_that_is_computed_lies_on_the_device_of_the_test(name, test):
    try:
        assert places.CONTRACT.breaches(case_of(name, test, "cpu", "tiny", full_too=True)) == []
    except NotJudged as reason:
        pytest.skip(str(reason))


@every_model
def test_a_model_leaves_arguments_and_the_seed_to_the_base_class(name):
    assert model_class(name).__init__ is BenchmarkModel.__init__


def test_of_every_model_of_version_one_it_is_known_what_was_published():
    assert set(load_suite("v1").models) <= set(PUBLISHED)


@every_published_model
def test_the_full_size_has_the_published_number_of_parameters(name):
    module, _ = build(name, "eval", device="meta", preset="full").get_module()
    assert sum(parameter.numel() for parameter in module.parameters()) == PUBLISHED[name].parameters


@every_published_model
@every_test
def test_the_full_size_has_the_inputs_of_version_one(name, test):
    if test not in Registry().model(name).metadata.tests:
        pytest.skip(f"{name} has no test {test!r}")
    published = PUBLISHED[name]
    model = build(name, test, device="meta", preset="full")
    expected = published.train_input if test == "train" else published.eval_input
    assert as_tensors(model.get_module()[1])[0].shape == expected
    assert model.batch_size == expected[0]


@every_published_model
def test_the_optimizer_is_set_as_that_of_version_one(name):
    if "train" not in Registry().model(name).metadata.tests:
        pytest.skip(f"{name} has no training")
    (group,) = build(name).get_optimizer().param_groups
    assert group | PUBLISHED[name].optimizer == group


@pytest.mark.parametrize("name", in_turns(name for name, one in PUBLISHED.items() if one.multiplications is not None))
def test_an_inference_at_full_size_costs_the_published_number_of_multiplications(name):
    model = build(name, "eval", device="meta", preset="full")
    with FlopCounterMode(display=False) as counter:
        model.invoke()
    assert counter.get_total_flops() / 2 == pytest.approx(PUBLISHED[name].multiplications, rel=0.002)


@pytest.mark.parametrize("name", load_suite("smoke").models)
@every_test
def test_of_the_smoke_suite_only_the_models_that_the_slow_build_slows_use_layer_norm_and_gelu(name, test):
    model = build(name, test)
    (operators,) = watch(model, model.invoke, warm=0, iterations=1).operators
    used = {operator for operator in operators if "layer_norm" in operator or "gelu" in operator}
    assert used >= {"native_layer_norm", "gelu"} if name in SLOWED_MODELS else used == set()


def test_embedding_gradients_of_dlrm_are_sparse():
    model = build("dlrm")
    model.invoke()
    assert all(table.weight.grad.is_sparse for table in model.get_module()[0].tables)


def test_the_decoder_of_t5_reads_the_tokens_of_the_encoder_in_inference_and_the_shifted_labels_in_training():
    seen = []

    def note(module, args, kwargs):
        seen.append(kwargs["input_ids"].clone())

    for test in ("eval", "train"):
        model = build("hf_T5", test)
        module, inputs = model.get_module()
        module.get_decoder().register_forward_pre_hook(note, with_kwargs=True)
        model.invoke()
        start = torch.zeros_like(inputs["input_ids"][:, :1])
        expected = inputs["input_ids"] if test == "eval" else torch.cat([start, inputs["labels"][:, :-1]], dim=1)
        assert torch.equal(seen.pop(), expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"test": "infer"}, ValueError, "test must be 'train' or 'eval', not 'infer'"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1, not 0"),
        ({"batch_size": -2}, ValueError, "batch_size must be a whole number of at least 1, not -2"),
        ({"batch_size": 1.5}, ValueError, "batch_size must be a whole number of at least 1, not 1.5"),
        ({"extra_args": ["--amp"]}, ValueError, r"takes no extra_args, got \['--amp'\]"),
        ({"preset": "huge"}, NotImplementedError, r"no preset 'huge' \(it has full, head, tiny\)"),
        ({"device": "abacus"}, RuntimeError, "abacus"),
    ],
)
def test_a_wrong_argument_is_named_in_the_error(arguments, error, message):
    with pytest.raises(error, match=message):
        build("resnet18", **{"test": "eval", **arguments})
