"""A model changes nothing that outlives it: not the defaults of torch, not the process, and no seed in an iteration."""

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import BenchmarkModel

ITERATIONS = 2
_CUDNN, _MATMUL, _KERNELS = torch.backends.cudnn, torch.backends.cuda.matmul, torch.backends.cuda


@dataclass(frozen=True)
class Setting:
    """Something of the whole process, and how it is set back."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _attribute(owner: Any, name: str) -> Setting:
    return Setting(lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


SETTINGS: dict[str, Setting] = {
    "the default dtype": Setting(torch.get_default_dtype, torch.set_default_dtype),
    "the default device": Setting(torch.get_default_device, torch.set_default_device),
    "the gradient mode": Setting(torch.is_grad_enabled, torch.set_grad_enabled),
    "the number of threads": Setting(torch.get_num_threads, torch.set_num_threads),
    "the precision of matrix products": Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "deterministic algorithms": Setting(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "anomaly detection": Setting(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    **{f"cudnn.{name}": _attribute(_CUDNN, name) for name in ("benchmark", "deterministic", "enabled", "allow_tf32")},
    "cuda.matmul.allow_tf32": _attribute(_MATMUL, "allow_tf32"),
    "flash attention": Setting(_KERNELS.flash_sdp_enabled, _KERNELS.enable_flash_sdp),
    "memory-efficient attention": Setting(_KERNELS.mem_efficient_sdp_enabled, _KERNELS.enable_mem_efficient_sdp),
    "attention in plain operators": Setting(_KERNELS.math_sdp_enabled, _KERNELS.enable_math_sdp),
    "the engine of quantized operators": _attribute(torch.backends.quantized, "engine"),
    "the environment's variables": Setting(lambda: dict(os.environ), _set_environment),
    "the working folder": Setting(os.getcwd, os.chdir),
}
GENERATORS: dict[str, tuple[Callable[[int], object], Callable[[], object]]] = {
    "torch": (torch.manual_seed, lambda: bytes(torch.default_generator.get_state().numpy())),
    "random": (random.seed, random.getstate),
    "numpy": (numpy.random.seed, lambda: numpy.random.get_state()[1].tobytes()),
}


def breaches(case: Case) -> list[str]:
    before = read_settings()
    model = case.build()
    for _ in range(ITERATIONS):
        model.invoke()
    found = []
    if changed := [name for name, value in read_settings().items() if value != before[name]]:
        found.append(f"the model changes {listed(changed)} for the whole process; do without, or set it back")
    if seeded := _seeded(model):
        found.append(f"an iteration seeds the generator of {listed(seeded)}; the base class seeds once, before setup()")
    return found


def read_settings() -> dict[str, Any]:
    return {name: setting.read() for name, setting in SETTINGS.items()}


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """Whatever a model sets inside, it is as before afterwards."""
    before = read_settings()
    try:
        yield
    finally:
        for name, setting in SETTINGS.items():
            if setting.read() != before[name]:
                setting.write(before[name])


def _seeded(model: BenchmarkModel) -> list[str]:
    """Generators that are the same after an iteration, whatever they were before it."""
    states = []
    for seed in (11, 12):
        for set_seed, _ in GENERATORS.values():
            set_seed(seed)
        model.invoke()
        states.append({name: read() for name, (_, read) in GENERATORS.items()})
    return [name for name in GENERATORS if states[0][name] == states[1][name]]


CONTRACT = Contract("global state", "nothing global is changed, and no generator is seeded in an iteration", breaches)
