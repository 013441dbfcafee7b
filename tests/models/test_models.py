"""The contract that every model keeps, tried at the size `tiny`; the size `full` is built on the meta device."""

import copy
import importlib

import pytest
import torch
from e2e.slow_build import SLOWED_MODELS
from published import PUBLISHED
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from torchbenchmark.model import as_tensors
from torchbenchmark.registry import Registry, load_suite

MODELS = tuple(Registry().models)
STAGED = tuple(name for name in MODELS if name != "soft_actor_critic")
TESTS = ("train", "eval")

every_model = pytest.mark.parametrize("name", MODELS)
every_test = pytest.mark.parametrize("test", TESTS)
every_staged_model = pytest.mark.parametrize("name", STAGED)
every_published_model = pytest.mark.parametrize("name", PUBLISHED)


def model_class(name):
    return importlib.import_module(f"torchbenchmark.models.{name}").Model


def build(name, test="train", device="cpu", preset="tiny", **options):
    return model_class(name)(test=test, device=device, preset=preset, **options)


def losses(model, steps):
    return [model.invoke()[0] for _ in range(steps)]


def snapshot(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


class OperatorLog(TorchDispatchMode):
    """Names of the dispatched operators and the devices of what they return; 0-dimensional results do not count, for an
    optimizer may keep its step count on the host."""

    def __init__(self):
        super().__init__()
        self.names, self.devices = set(), set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.names.add(function.overloadpacket.__name__)
        self.devices |= {tensor.device.type for tensor in as_tensors(result) if tensor.dim() > 0}
        return result


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
def test_module_and_inputs_of_get_module_fit_together(name, test):
    module, inputs = build(name, test).get_module()
    output = module(**inputs) if isinstance(inputs, dict) else module(*inputs)
    assert all(tensor.isfinite().all() for tensor in as_tensors(output))


@every_model
@every_test
@pytest.mark.parametrize("preset", ["tiny", "full"])
def test_parameters_buffers_inputs_and_activations_lie_on_the_declared_device(name, test, preset):
    model = build(name, test, device="meta", preset=preset)
    module, inputs = model.get_module()
    tensors = [*module.parameters(), *module.buffers(), *as_tensors(inputs)]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    with OperatorLog() as log:
        if preset == "full":
            model.call_module()  # the rest of a training step is the same code at both sizes
        else:
            model.invoke()
    assert log.devices == {"meta"}


@every_model
@every_test
def test_an_invocation_draws_no_random_numbers_but_those_of_the_workload(name, test):
    model = build(name, test)
    model.invoke()
    with OperatorLog() as log:
        model.invoke()
    random = {
        operator
        for operator in log.names
        if any(part in operator for part in ("rand", "normal_", "uniform", "bernoulli", "dropout"))
    }
    allowed = PUBLISHED[name].random_operators if test == "train" and name in PUBLISHED else set()
    assert random <= allowed
    assert bool(random) == bool(allowed)


@every_model
@every_test
def test_a_forward_pass_reads_no_value_back_to_decide_what_to_do(name, test):
    """On a GPU the host would wait for the device there."""
    model = build(name, test)
    model.eval()
    with OperatorLog() as log:
        model.eval()
    assert log.names & {"_local_scalar_dense", "equal", "masked_select", "nonzero", "_unique2"} == set()


@every_model
@every_test
def test_the_module_and_its_inputs_stay_the_same_objects_with_the_same_values(name, test):
    model = build(name, test)
    module, inputs = model.get_module()
    before = copy.deepcopy(inputs)
    model.invoke()
    model.invoke()
    assert model.get_module()[0] is module
    assert model.get_module()[1] is inputs
    for was, now in zip(as_tensors(before), as_tensors(inputs), strict=True):
        assert torch.equal(was, now)


@every_model
@every_test
def test_an_invocation_runs_the_module_that_was_set(name, test):
    class Counting(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.calls = inner, 0

        def forward(self, *args, **kwargs):
            self.calls += 1
            return self.inner(*args, **kwargs)

    reference, model = build(name, test), build(name, test)
    wrapped = Counting(model.get_module()[0])
    model.set_module(wrapped)
    assert model.get_module()[0] is wrapped
    torch.manual_seed(0)
    outputs = model.invoke()
    torch.manual_seed(0)
    for ours, theirs in zip(outputs, reference.invoke(), strict=True):
        assert torch.equal(ours, theirs)
    assert wrapped.calls == {"train": 2, "eval": 10}[test] if name == "soft_actor_critic" else wrapped.calls == 1


@every_model
def test_an_inference_has_no_gradient_and_leaves_no_trace(name):
    model = build(name, "eval")
    first, second = model.invoke(), model.invoke()
    assert not any(tensor.requires_grad for tensor in first)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert not model.get_module()[0].training


@every_model
def test_an_inference_instance_has_no_optimizer_and_refuses_to_train(name):
    model = build(name, "eval")
    assert model.get_optimizer() is None
    assert not any(isinstance(value, torch.optim.Optimizer) for value in vars(model).values())
    with pytest.raises(NotImplementedError, match="test='eval'"):
        model.train()


@every_model
@pytest.mark.parametrize("batch_size", [None, 1, 3])
def test_the_batch_size_is_that_of_inputs_and_outputs(name, batch_size):
    model = build(name, "eval", batch_size=batch_size)
    expected = batch_size or type(model).PRESETS["tiny"].eval_batch
    assert model.batch_size == expected
    assert as_tensors(model.get_module()[1])[0].shape[0] == expected
    assert all(output.shape[0] == expected for output in model.invoke())


@every_model
@pytest.mark.parametrize("batch_size", [None, 1, 3])
def test_the_batch_size_is_that_of_the_training_data(name, batch_size):
    model = build(name, "train", batch_size=batch_size)
    expected = batch_size or type(model).PRESETS["tiny"].train_batch
    seen = []
    model.get_module()[0].register_forward_hook(
        lambda module, args, kwargs, output: seen.append(as_tensors([list(args), kwargs])[0].shape[0]), with_kwargs=True
    )
    (loss,) = model.invoke()
    assert loss.isfinite()
    assert set(seen) == {expected}


@every_model
def test_a_training_step_returns_a_detached_scalar_and_changes_every_parameter(name):
    model = build(name)
    for group in model.get_optimizer().param_groups:
        group["lr"] = 0.1  # so that a step shows in float32 where a gradient is small
    module = model.get_module()[0]
    before = snapshot(module)
    (loss,) = model.invoke()
    assert loss.shape == () and not loss.requires_grad
    model.invoke()
    unchanged = [
        key
        for (key, now), was in zip(module.named_parameters(), before, strict=True)
        if now.requires_grad and torch.equal(now, was)
    ]
    assert unchanged == []
    assert module.training


@every_model
def test_the_gradients_of_equal_steps_are_equal_and_not_piled_up(name):
    model = build(name)
    for optimizer in [value for value in vars(model).values() if isinstance(value, torch.optim.Optimizer)]:
        for group in optimizer.param_groups:
            group["lr"] = 0.0
    seen = []
    for _ in range(2):
        torch.manual_seed(7)
        model.invoke()
        gradients = [parameter.grad for parameter in model.get_module()[0].parameters()]
        seen.append([gradient.to_dense().clone() for gradient in gradients])
    assert any(gradient.abs().max() > 0 for gradient in seen[0])
    assert all(torch.equal(one, other) for one, other in zip(*seen, strict=True))


@every_model
def test_the_optimizer_is_built_once_and_keeps_its_state(name):
    model = build(name)
    optimizer = model.get_optimizer()
    losses(model, 3)
    assert model.get_optimizer() is optimizer
    if isinstance(optimizer, torch.optim.Adam):
        assert {int(state["step"]) for state in optimizer.state.values()} == {3}


@every_model
def test_a_training_step_uses_the_optimizer_that_was_set(name):
    model = build(name)
    module = model.get_module()[0]
    idle = torch.optim.SGD(module.parameters(), lr=0.0)
    model.set_optimizer(idle)
    before = snapshot(module)
    model.invoke()
    assert model.get_optimizer() is idle
    assert all(torch.equal(was, now) for was, now in zip(before, module.parameters(), strict=True))


@every_staged_model
def test_the_three_stages_after_zeroing_are_what_train_does(name):
    whole = losses(build(name), 3)
    model = build(name)
    staged = []
    for _ in range(3):
        model.get_optimizer().zero_grad()
        loss = model.forward()
        model.backward(loss)
        model.optimizer_step()
        staged.append(loss.detach())
    assert all(torch.equal(one, other) for one, other in zip(whole, staged, strict=True))


@every_model
def test_two_instances_of_one_test_give_bit_equal_losses(name):
    first, second = losses(build(name), 4), losses(build(name), 4)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@every_model
def test_training_one_instance_leaves_another_alone(name):
    first, second = build(name), build(name)
    before = copy.deepcopy(second.get_module()[0].state_dict())
    inputs = copy.deepcopy(second.get_module()[1])
    losses(first, 2)
    for key, value in second.get_module()[0].state_dict().items():
        assert torch.equal(before[key], value), key
    for was, now in zip(as_tensors(inputs), as_tensors(second.get_module()[1]), strict=True):
        assert torch.equal(was, now)


@every_model
def test_losses_stay_finite_and_fall_over_two_hundred_steps(name):
    curve = torch.stack(losses(build(name), 200))
    assert curve.isfinite().all()
    assert curve[30:40].mean() < curve[:10].mean()
    assert curve[-10:].mean() < curve[:10].mean()


def test_of_every_model_of_version_one_it_is_known_what_was_published():
    assert set(load_suite("v1").models) <= set(PUBLISHED)


@every_published_model
def test_the_full_size_has_the_published_number_of_parameters(name):
    module, _ = build(name, "eval", device="meta", preset="full").get_module()
    assert sum(parameter.numel() for parameter in module.parameters()) == PUBLISHED[name].parameters


@every_published_model
@every_test
def test_the_full_size_has_the_inputs_of_version_one(name, test):
    published = PUBLISHED[name]
    model = build(name, test, device="meta", preset="full")
    expected = published.train_input if test == "train" else published.eval_input
    assert as_tensors(model.get_module()[1])[0].shape == expected
    assert model.batch_size == expected[0]


@every_published_model
def test_the_optimizer_is_set_as_that_of_version_one(name):
    (group,) = build(name).get_optimizer().param_groups
    assert group | PUBLISHED[name].optimizer == group


@pytest.mark.parametrize("name", [name for name in PUBLISHED if PUBLISHED[name].multiplications is not None])
def test_an_inference_at_full_size_costs_the_published_number_of_multiplications(name):
    model = build(name, "eval", device="meta", preset="full")
    with FlopCounterMode(display=False) as counter:
        model.invoke()
    assert counter.get_total_flops() / 2 == pytest.approx(PUBLISHED[name].multiplications, rel=0.002)


@pytest.mark.parametrize("name", load_suite("smoke").models)
@every_test
def test_of_the_smoke_suite_only_the_models_that_the_slow_build_slows_use_layer_norm_and_gelu(name, test):
    model = build(name, test)
    with OperatorLog() as log:
        model.invoke()
    used = {operator for operator in log.names if "layer_norm" in operator or "gelu" in operator}
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


@every_model
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"test": "infer"}, ValueError, "test must be 'train' or 'eval', not 'infer'"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1, not 0"),
        ({"batch_size": -2}, ValueError, "batch_size must be a whole number of at least 1, not -2"),
        ({"batch_size": 1.5}, ValueError, "batch_size must be a whole number of at least 1, not 1.5"),
        ({"extra_args": ["--amp"]}, ValueError, r"takes no extra_args, got \['--amp'\]"),
        ({"preset": "huge"}, NotImplementedError, r"no preset 'huge' \(it has full, tiny\)"),
        ({"device": "abacus"}, RuntimeError, "abacus"),
    ],
)
def test_a_wrong_argument_is_named_in_the_error(name, arguments, error, message):
    with pytest.raises(error, match=message):
        build(name, **{"test": "eval", **arguments})
