"""A model changes nothing that outlives it: not the defaults of torch, not the process, and no seed in an iteration."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy
import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.wording import listed

ITERATIONS = 2
SETTINGS: dict[str, Callable[[], object]] = {
    "the default dtype": torch.get_default_dtype,
    "the default device": torch.get_default_device,
    "the gradient mode": torch.is_grad_enabled,
    "the inference mode": torch.is_inference_mode_enabled,
    "autocasting": lambda: [torch.is_autocast_enabled(device) for device in ("cpu", "cuda")],
    "the number of threads": torch.get_num_threads,
    "the precision of matrix products": torch.get_float32_matmul_precision,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "the checks of backward": torch.is_anomaly_enabled,
    "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "cudnn.deterministic": lambda: torch.backends.cudnn.deterministic,
    "cudnn.enabled": lambda: torch.backends.cudnn.enabled,
    "cudnn.allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
    "cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
    "attention kernels": lambda: [
        torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.cuda.mem_efficient_sdp_enabled(),
        torch.backends.cuda.math_sdp_enabled(),
    ],
    "the quantized engine": lambda: torch.backends.quantized.engine,
    "the environment's variables": lambda: dict(os.environ),
    "the working folder": Path.cwd,
}
GENERATORS: dict[str, tuple[Callable[[int], object], Callable[[], object]]] = {
    "torch": (torch.manual_seed, lambda: bytes(torch.default_generator.get_state().numpy())),
    "random": (random.seed, random.getstate),
    "numpy": (numpy.random.seed, lambda: numpy.random.get_state()[1].tobytes()),
}


def breaches(case: Case) -> list[str]:
    before = _settings()
    try:
        model = case.build()
        for _ in range(ITERATIONS):
            model.invoke()
        changed = [name for name, value in _settings().items() if value != before[name]]
        found = []
        if changed:
            found.append(f"the model changes {listed(changed)} for the whole process; set it back, or do without")
        if seeded := _seeded(model):
            found.append(
                f"an iteration seeds the generator of {listed(seeded)}; the base class seeds, once, before setup()"
            )
        return found
    finally:
        _restore(before)


def _settings() -> dict[str, object]:
    return {name: read() for name, read in SETTINGS.items()}


def _seeded(model) -> list[str]:
    """Generators that are the same after an iteration, whatever they were before it."""
    states = []
    for seed in (11, 12):
        for set_seed, _ in GENERATORS.values():
            set_seed(seed)
        model.invoke()
        states.append({name: read() for name, (_, read) in GENERATORS.items()})
    return [name for name in GENERATORS if states[0][name] == states[1][name]]


def _restore(before: dict[str, object]) -> None:
    """What another contract would be disturbed by."""
    torch.set_default_dtype(before["the default dtype"])
    torch.set_default_device(before["the default device"])
    torch.set_grad_enabled(before["the gradient mode"])
    torch.set_num_threads(before["the number of threads"])
    torch.use_deterministic_algorithms(before["deterministic algorithms"])
    os.chdir(before["the working folder"])


CONTRACT = Contract("global state", "nothing global is changed, and no generator is seeded in an iteration", breaches)
