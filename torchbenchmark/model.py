"""BenchmarkModel: the contract that every model of the suite fulfils. Needs torch and the standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import torch
from torch import nn

SEED = 1337


@dataclass(frozen=True)
class Preset:
    """One size of a model: batch sizes of its two tests, and the shape parameters its builder reads."""

    train_batch: int
    eval_batch: int
    shape: Mapping[str, Any]


class BenchmarkModel:
    """One model, built for one test on one device, ready to be invoked.

    A subclass sets `PRESETS`, builds in `setup()` (self.module, self.example_inputs and, for training, self.optimizer),
    and gives either the staged trio `forward` / `backward` / `optimizer_step` or `train`. All data is made in `setup()`
    on `self.device`: an invocation makes no data, reads no file and copies no input from the host.
    """

    PRESETS: ClassVar[Mapping[str, Preset]] = {}
    EVAL_WITHOUT_GRAD: ClassVar[bool] = True

    module: nn.Module
    example_inputs: tuple[Any, ...] | dict[str, Any]
    optimizer: torch.optim.Optimizer | None = None

    def __init__(
        self,
        test: str,
        device: str,
        batch_size: int | None = None,
        extra_args: tuple[str, ...] | list[str] = (),
        *,
        preset: str = "full",
    ) -> None:
        """`test` is "train" or "eval"; `batch_size` None takes the preset's.

        Raises ValueError for wrong arguments and NotImplementedError for what this model cannot do.
        """
        if test not in ("train", "eval"):
            raise ValueError(f"test must be 'train' or 'eval', not {test!r}")
        if extra_args:
            raise ValueError(f"{self.name} takes no extra_args, got {list(extra_args)}")
        if preset not in self.PRESETS:
            raise NotImplementedError(f"{self.name} has no preset {preset!r} (it has {', '.join(self.PRESETS)})")
        chosen = self.PRESETS[preset]
        self.test = test
        self.device = device
        self.preset = preset
        self.shape = chosen.shape
        if batch_size is None:
            batch_size = chosen.train_batch if test == "train" else chosen.eval_batch
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number of at least 1, not {batch_size!r}")
        self.batch_size = batch_size
        torch.manual_seed(SEED)
        self.setup()
        self.module.train(test == "train")

    @property
    def name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def setup(self) -> None:
        raise NotImplementedError(f"{self.name} does not build anything: give it a setup()")

    def get_module(self) -> tuple[nn.Module, tuple[Any, ...] | dict[str, Any]]:
        """The module and example inputs for it: `module(*inputs)`, or `module(**inputs)` where inputs is a dict."""
        return self.module, self.example_inputs

    def set_module(self, module: nn.Module) -> None:
        """Use `module` (a wrapped or compiled form of the one given out) from now on."""
        self.module = module

    def get_optimizer(self) -> torch.optim.Optimizer | None:
        return self.optimizer

    def set_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    def cast(self, dtype: torch.dtype) -> None:
        """Hold the weights and all floating-point data in `dtype` from now on: whatever tensors the attributes hold.

        Each tensor stays the object that it is, so an optimizer that was built before keeps its parameters. A model
        that must keep something in 32 bits does so here; one that cannot be cast says so in its metadata.
        """
        _cast_floating(vars(self), dtype)

    def call_module(self) -> Any:
        """One forward pass over the example inputs."""
        inputs = self.example_inputs
        return self.module(**inputs) if isinstance(inputs, dict) else self.module(*inputs)

    def eval(self) -> tuple[torch.Tensor, ...]:
        """One inference; gradients are off unless the model declares otherwise."""
        return as_tensors(self.call_module())

    def forward(self) -> torch.Tensor:
        """First stage of training: the loss, a scalar with a graph."""
        raise NotImplementedError(f"{self.name} has no training")

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def optimizer_step(self) -> None:
        if self.optimizer is None:
            raise NotImplementedError(f"{self.name} has no optimizer")
        self.optimizer.step()

    def train(self) -> torch.Tensor:
        """One training step: zero the gradients, then the three stages. Returns the detached loss."""
        if self.optimizer is None:
            raise NotImplementedError(f"{self.name} has no optimizer: it was built for test={self.test!r}")
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward()
        self.backward(loss)
        self.optimizer_step()
        return loss.detach()

    def invoke(self) -> tuple[torch.Tensor, ...]:
        """One iteration of the test: the outputs of an inference, or the loss of a training step."""
        if self.test == "train":
            return (self.train(),)
        if self.EVAL_WITHOUT_GRAD:
            with torch.no_grad():
                return self.eval()
        return self.eval()


def _cast_floating(value: Any, dtype: torch.dtype) -> None:
    """Cast the floating-point tensors in modules, sequences, mappings and dataclasses, in place."""
    if isinstance(value, nn.Module):
        value.to(dtype)
    elif isinstance(value, torch.Tensor):
        if value.is_floating_point():
            value.data = value.data.to(dtype)
    elif isinstance(value, Mapping):
        for item in value.values():
            _cast_floating(item, dtype)
    elif isinstance(value, tuple | list):
        for item in value:
            _cast_floating(item, dtype)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            _cast_floating(getattr(value, part.name), dtype)


def as_tensors(output: Any) -> tuple[torch.Tensor, ...]:
    """The tensors in whatever a module returns: a tensor, nested sequences and mappings of them."""
    if isinstance(output, torch.Tensor):
        return (output,)
    if isinstance(output, Mapping):
        output = tuple(output.values())
    if isinstance(output, tuple | list):
        return tuple(tensor for item in output for tensor in as_tensors(item))
    return ()
