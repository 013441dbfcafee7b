"""In which types a model computes under each precision, that its optimizer follows, and what is refused."""

import pytest
import torch
from tiny_model import ByHand, Model

from torchbenchmark.experiment import PRECISIONS
from torchbenchmark.worker.precisions import apply_precision


@pytest.fixture(autouse=True)
def switches():
    """The process-wide switches as they were."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def built(precision: str, test: str, kind: type[Model] = Model) -> Model:
    model = kind(test=test, device="cpu")
    apply_precision(precision, model)
    return model


def types_inside(model: Model) -> set[torch.dtype]:
    """Of the outputs of the linear layers in one iteration."""
    seen: set[torch.dtype] = set()
    for layer in (model.module[0], model.module[3]):
        layer.register_forward_hook(lambda _module, _inputs, output: seen.add(output.dtype))
    model.invoke()
    return seen


@pytest.mark.parametrize(
    ("precision", "inside"),
    [
        ("fp32", torch.float32),
        ("fp16", torch.float16),
        ("bf16", torch.bfloat16),
        ("amp_fp16", torch.float16),
        ("amp_bf16", torch.bfloat16),
    ],
)
@pytest.mark.parametrize(("kind", "test"), [(Model, "train"), (Model, "eval"), (ByHand, "eval")])
def test_the_layers_compute_in_the_type_of_the_precision(kind, test, precision, inside):
    assert types_inside(built(precision, test, kind)) == {inside}


def test_a_training_that_is_no_staged_trio_is_autocast_as_a_whole():
    assert types_inside(built("amp_bf16", "train", ByHand)) == {torch.bfloat16}


def test_a_cast_reaches_all_floating_point_data_and_no_other():
    model = built("bf16", "train")
    assert {parameter.dtype for parameter in model.module.parameters()} == {torch.bfloat16}
    assert model.module[1].running_mean.dtype == torch.bfloat16
    assert model.module[1].num_batches_tracked.dtype == torch.int64
    assert model.example_inputs[0].dtype == model.batch.targets.dtype == model.batch.weights[0].dtype == torch.bfloat16
    assert model.positions.dtype == torch.int64


def test_the_optimizer_steps_the_parameters_that_were_cast():
    model = built("bf16", "train")
    before = [parameter.detach().clone() for parameter in model.module.parameters()]
    model.invoke()
    assert all(not torch.equal(old, new) for old, new in zip(before, model.module.parameters(), strict=True))
    moments = [state["exp_avg"].dtype for state in model.optimizer.state.values()]
    assert moments == [torch.bfloat16] * 6


@pytest.mark.parametrize("precision", ["amp_fp16", "amp_bf16"])
def test_autocast_leaves_weights_and_gradients_in_32_bits(precision):
    model = built(precision, "train")
    loss = model.invoke()[0]
    assert {parameter.dtype for parameter in model.module.parameters()} == {torch.float32}
    assert {parameter.grad.dtype for parameter in model.module.parameters()} == {torch.float32}
    assert loss.dtype == torch.float32


def test_the_backward_pass_and_the_step_are_outside_of_autocast():
    model = built("amp_bf16", "train")
    enabled = []
    for stage in ("backward", "optimizer_step"):
        run = getattr(model, stage)
        setattr(model, stage, lambda *args, run=run: (enabled.append(torch.is_autocast_enabled("cpu")), run(*args)))
    model.invoke()
    assert enabled == [False, False]


def test_gradients_in_fp16_are_scaled_up_for_the_backward_pass_and_down_for_the_step():
    scaled, plain = built("amp_fp16", "train"), built("amp_bf16", "train")
    in_step = {}
    for model in (scaled, plain):
        step = model.optimizer.step
        model.optimizer.step = lambda *_, model=model, step=step: (
            in_step.setdefault(model, model.module[3].weight.grad.clone()),
            step(),
        )
    losses: list[float] = []
    scaled.module[3].bias.register_hook(lambda gradient: losses.append(float(gradient.abs().max())))
    for model in (scaled, plain):
        model.invoke()
    assert torch.allclose(in_step[scaled], in_step[plain], rtol=0.1, atol=0.05)
    assert losses[0] > 1000


def test_a_model_that_steps_its_optimizers_itself_cannot_train_with_scaled_gradients():
    with pytest.raises(NotImplementedError, match="amp_fp16 scales gradients where training is the staged trio"):
        built("amp_fp16", "train", ByHand)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_tf32_is_on_for_tf32_alone_in_products_and_convolutions(precision):
    built(precision, "eval")
    on = precision == "tf32"
    assert torch.backends.cuda.matmul.allow_tf32 is on
    assert torch.backends.cudnn.allow_tf32 is on
    assert (torch.backends.cuda.matmul.fp32_precision == "tf32") is on
    assert (torch.backends.cudnn.conv.fp32_precision == "tf32") is on


def test_an_unknown_precision_is_not_implemented():
    with pytest.raises(NotImplementedError, match="precision 'fp8'"):
        built("fp8", "eval")
