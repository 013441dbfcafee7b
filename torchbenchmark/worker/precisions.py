"""In which floating-point numbers a model computes: `apply_precision` sets the build's switches and the model's data.

fp32 is 32 bits everywhere: torch's own default lets cuDNN's convolutions round to TF32, which this turns off, and tf32
turns on for convolutions and matrix products alike. fp16 and bf16 cast the model; amp_* leave it and cast operator by
operator, inside the forward pass.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchbenchmark.model import BenchmarkModel

CAST = {"fp16": torch.float16, "bf16": torch.bfloat16}
AUTOCAST = {"amp_fp16": torch.float16, "amp_bf16": torch.bfloat16}


def apply_precision(name: str, model: BenchmarkModel) -> None:
    """Have `model` compute in the precision; before a backend sees it. Raises NotImplementedError if it cannot."""
    allow_tf32(name == "tf32")
    if name in CAST:
        model.cast(CAST[name])
    elif name in AUTOCAST:
        _autocast(model, AUTOCAST[name])
        if model.test == "train" and AUTOCAST[name] is torch.float16:
            _scale_gradients(model)
    elif name not in ("fp32", "tf32"):
        raise NotImplementedError(f"precision {name!r} is not built yet")


def allow_tf32(allowed: bool) -> None:
    """By the older of torch's two interfaces, which sets the newer one too; mixing them is an error in torch 2.9."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def _autocast(model: BenchmarkModel, dtype: torch.dtype) -> None:
    """Autocast the forward passes: `forward` where training is staged, for the backward pass then follows by itself;
    else all of what the model does in an iteration."""

    def under_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with torch.autocast(model.device, dtype=dtype):
                return function(*args, **kwargs)

        return run

    if is_staged(model):
        model.forward = under_autocast(model.forward)
    else:
        model.invoke = under_autocast(model.invoke)


def _scale_gradients(model: BenchmarkModel) -> None:
    """Scale the loss up and the gradients down again, as gradients in fp16 need it.

    A step whose gradients overflow is left out and the scale halved, as everywhere; each step waits for the device to
    learn of it.
    """
    kind = type(model)
    whole = kind.backward is BenchmarkModel.backward and kind.optimizer_step is BenchmarkModel.optimizer_step
    if not (is_staged(model) and whole):
        raise NotImplementedError(
            f"{model.name} steps its optimizers itself: amp_fp16 scales gradients where training is the staged trio"
        )
    scaler = torch.amp.GradScaler(model.device)
    backward = model.backward

    def scaled_backward(loss: torch.Tensor) -> None:
        backward(scaler.scale(loss))

    def scaled_step() -> None:
        scaler.step(model.get_optimizer())
        scaler.update()

    model.backward = scaled_backward
    model.optimizer_step = scaled_step


def is_staged(model: BenchmarkModel) -> bool:
    """True if the test is a training whose forward pass is a stage of its own."""
    kind = type(model)
    own = kind.train is not BenchmarkModel.train or kind.invoke is not BenchmarkModel.invoke
    return model.test == "train" and not own
