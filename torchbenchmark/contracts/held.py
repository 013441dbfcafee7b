"""What an instance of a model holds, wherever its attributes keep it: networks, tensors, optimizers and generators."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch import nn

from torchbenchmark.model import BenchmarkModel

OWN_PACKAGES = ("torchbenchmark.", "torchbenchmark_extra_models.")
_GENERATORS = (torch.Generator, random.Random, numpy.random.Generator, numpy.random.RandomState)


@dataclass
class Held:
    """By the path of attributes that leads there; what several paths lead to is there once."""

    modules: dict[str, nn.Module] = field(default_factory=dict)  # the outermost ones
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)  # parameters and buffers too, not their gradients
    optimizers: dict[str, torch.optim.Optimizer] = field(default_factory=dict)
    generators: dict[str, Any] = field(default_factory=dict)

    @property
    def trainable(self) -> dict[str, torch.Tensor]:
        """The leaves that ask for gradients: parameters, and others that an optimizer may move."""
        return {path: tensor for path, tensor in self.tensors.items() if tensor.requires_grad and tensor.is_leaf}


def held_by(model: BenchmarkModel) -> Held:
    """All that is reachable. Of the network that get_module() gives, paths are the names that it has itself."""
    found, seen = Held(), set()
    network = model.get_module()[0]
    found.modules["module"] = network
    _collect_module(network, "", found, seen)
    for name, value in vars(model).items():
        _collect(value, name, found, seen)
    for path, optimizer in found.optimizers.items():
        for number, parameter in enumerate(_parameters_of(optimizer)):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found.tensors[f"{path}.parameter {number}"] = parameter
    return found


def _parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _collect(value: Any, path: str, found: Held, seen: set[int]) -> None:
    if value is None or isinstance(value, bool | int | float | str | bytes | type) or id(value) in seen:
        return
    if isinstance(value, nn.Module):
        found.modules[path] = value
        _collect_module(value, f"{path}.", found, seen)
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        found.tensors[path] = value
    elif isinstance(value, torch.optim.Optimizer):
        found.optimizers[path] = value
    elif isinstance(value, _GENERATORS):
        found.generators[path] = value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _collect(item, f"{path}[{key!r}]", found, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for number, item in enumerate(value):
            _collect(item, f"{path}[{number}]", found, seen)
    elif type(value).__module__.startswith(OWN_PACKAGES) and hasattr(value, "__dict__"):
        for name, item in vars(value).items():
            _collect(item, f"{path}.{name}", found, seen)


def _collect_module(module: nn.Module, prefix: str, found: Held, seen: set[int]) -> None:
    for name, tensor in [*module.named_parameters(prefix=""), *module.named_buffers(prefix="")]:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found.tensors[f"{prefix}{name}"] = tensor
    for name, inner in module.named_modules():
        seen.add(id(inner))
        for attribute, value in vars(inner).items():  # tensors that are no buffers
            if not attribute.startswith("_"):
                _collect(value, f"{prefix}{name}.{attribute}" if name else f"{prefix}{attribute}", found, seen)


def same_to_the_bit(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two tensors have the same shape, type and bits: one that is no number is the same as itself."""
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(_bits(one), _bits(other))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    dense = tensor.detach() if tensor.layout == torch.strided else tensor.detach().to_dense()
    real = torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense
    return real.contiguous().flatten().view(torch.uint8)
