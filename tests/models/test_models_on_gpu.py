"""The contract where only a GPU can show it: no wait for the device and no copy from the host in an iteration."""

import importlib

import pytest
import torch

from torchbenchmark.registry import Registry

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
    pytest.mark.parametrize("name", Registry().models),
    pytest.mark.parametrize("test", ["train", "eval"]),
    pytest.mark.parametrize("preset", ["tiny", "full"]),
]


def build(name, test, preset):
    return importlib.import_module(f"torchbenchmark.models.{name}").Model(test=test, device="cuda", preset=preset)


def test_an_iteration_never_makes_the_host_wait_for_the_device(name, test, preset):
    model = build(name, test, preset)
    model.invoke()
    model.invoke()
    torch.cuda.set_sync_debug_mode("error")
    try:
        model.invoke()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_an_iteration_copies_nothing_between_host_and_device(name, test, preset):
    model = build(name, test, preset)
    for _ in range(3):
        model.invoke()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        model.invoke()
        torch.cuda.synchronize()
    names = [event.name for event in profile.events()]
    assert any("Memcpy" not in name for name in names)
    assert [name for name in names if "Memcpy HtoD" in name or "Memcpy DtoH" in name] == []


def test_results_are_finite_and_equal_for_two_instances(name, test, preset):
    """Bit for bit where nothing is added up in an order that the device chooses: an embedding's gradient is, so of a
    training only the first loss, before any gradient, must be equal to the bit."""
    runs = []
    for _ in range(2):
        model = build(name, test, preset)
        runs.append([tensor for _ in range(3) for tensor in model.invoke()])
        del model
    assert all(tensor.isfinite().all() and tensor.is_cuda for tensor in runs[0])
    exact = 1 if test == "train" else len(runs[0])
    assert all(torch.equal(one, other) for one, other in zip(*(run[:exact] for run in runs), strict=True))
    assert all(torch.allclose(one, other, rtol=1e-3, atol=1e-5) for one, other in zip(*runs, strict=True))
