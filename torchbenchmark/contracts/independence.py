"""Two instances have nothing in common: what one does is not seen in the other."""

import functools
import sys
import types
from typing import Any

import torch
from torch import nn

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import OWN_PACKAGES, Held, held_by, same_to_the_bit
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import BenchmarkModel

ITERATIONS = 2
_DEPTH = 3  # of containers that are looked into
_CODE = (types.ModuleType, types.FunctionType, type, staticmethod, classmethod, property, functools.cached_property)


def breaches(case: Case) -> list[str]:
    first = case.build()
    state = _state_beside_instances(type(first))
    second = case.build()
    ours, theirs = held_by(first), held_by(second)
    if shared := _shared(ours, theirs):
        return [f"two instances share {listed(shared)}; make it in setup(), and keep it in attributes of self"]
    before = {path: tensor.detach().clone() for path, tensor in theirs.tensors.items()}
    for _ in range(ITERATIONS):
        first.invoke()
    if changed := [path for path, was in before.items() if not same_to_the_bit(theirs.tensors[path], was)]:
        return [f"iterations of one instance change {listed(changed)} of another; share nothing between them"]
    now = _state_beside_instances(type(first))
    if changed := [name for name in {**state, **now} if state.get(name) != now.get(name)]:
        return [f"an instance changes {listed(changed)}, which all instances share; keep state in attributes of self"]
    return []


def _shared(ours: Held, theirs: Held) -> list[str]:
    storages = {tensor.untyped_storage()._cdata for tensor in theirs.tensors.values() if _has_storage(tensor)}
    objects = {id(one) for held in (theirs.modules, theirs.optimizers, theirs.generators) for one in held.values()}
    others = [
        path
        for held in (ours.modules, ours.optimizers, ours.generators)
        for path, one in held.items()
        if id(one) in objects
    ]
    return others or [
        path
        for path, tensor in ours.tensors.items()
        if _has_storage(tensor) and tensor.untyped_storage()._cdata in storages
    ]


def _has_storage(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.numel() > 0


def _state_beside_instances(model: type[BenchmarkModel]) -> dict[str, Any]:
    """What classes and modules of the model hold beside code, as something that compares."""
    state = {}
    for one in model.__mro__:
        if one is BenchmarkModel or not one.__module__.startswith(OWN_PACKAGES):
            continue
        module = sys.modules[one.__module__]
        for owner, attributes in ((one.__qualname__, vars(one)), (one.__module__, vars(module))):
            for name, value in attributes.items():
                if not name.startswith("__") and not isinstance(value, _CODE):
                    state[f"{owner}.{name}"] = _print_of(value, _DEPTH)
    return state


def _print_of(value: Any, depth: int) -> Any:
    """What changes when the value does: identity where it is not plain data."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, torch.Tensor):
        return id(value), value._version, tuple(value.shape)
    if depth > 0 and not isinstance(value, nn.Module):
        if isinstance(value, list | tuple | set | frozenset):
            return id(value), [_print_of(item, depth - 1) for item in value]
        if isinstance(value, dict):
            return id(value), {key: _print_of(item, depth - 1) for key, item in value.items()}
    return id(value)


CONTRACT = Contract("independence", "two instances share nothing, and neither changes the other", breaches)
