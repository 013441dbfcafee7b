"""Every backend runs the model it is given, trains the parameters that the optimizer has, and gives eager's numbers."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tiny_model import Model
from torch import nn

from torchbenchmark import backends
from torchbenchmark.worker.backends import BACKENDS, apply_backend
from torchbenchmark.worker.backends.compiling import end_compiling_processes
from torchbenchmark.worker.backends.export import require_same_parameters

ON_THE_CPU = [name for name, backend in backends.BACKENDS.items() if "cpu" in backend.devices]
QUICK = [name for name in ON_THE_CPU if not name.startswith("inductor")]  # inductor compiles C++ for seconds


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def iterations(backend: str, test: str, count: int = 3) -> list[torch.Tensor]:
    model = Model(test=test, device="cpu")
    apply_backend(backend, model)
    return [model.invoke()[0] for _ in range(count)]


@pytest.mark.parametrize("test", ["train", "eval"])
@pytest.mark.parametrize("backend", QUICK)
def test_a_backend_computes_what_eager_computes(backend, test):
    assert torch.allclose(
        torch.stack(iterations(backend, test)), torch.stack(iterations("eager", test)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("backend", QUICK)
def test_training_moves_the_parameters_that_the_optimizer_was_built_for(backend):
    model = Model(test="train", device="cpu")
    before = [parameter.detach().clone() for parameter in model.module.parameters()]
    held = list(model.module.parameters())
    apply_backend(backend, model)
    losses = [model.invoke()[0].item() for _ in range(5)]
    assert all(not torch.equal(old, new) for old, new in zip(before, held, strict=True))
    assert losses[-1] < losses[0]


def test_inductor_compiles_for_the_cpu_and_computes_what_eager_computes(tmp_path):
    """In a process of its own, as a child measures: inductor imports setuptools, which other tests may have broken."""
    code = """
import torch
from test_backends import iterations
eager, compiled = iterations("eager", "eval"), iterations("inductor", "eval")
assert torch.allclose(torch.stack(compiled), torch.stack(eager), rtol=1e-4, atol=1e-6)
assert torch._inductor.config.compile_threads == 1
"""
    here = Path(__file__).parent
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": f"{here}{os.pathsep}{here.parents[1]}",
    }
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert list(tmp_path.rglob("*.so")), "inductor compiled nothing"


def test_compiling_processes_that_are_still_starting_are_killed_and_none_is_started_again(monkeypatch):
    starting = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    asked = []
    pool = SimpleNamespace(process=starting, shutdown=lambda: asked.append(starting.wait(timeout=10)))
    monkeypatch.setattr("torch._inductor.async_compile._pool_set", {pool.process: pool}.values())
    monkeypatch.setattr("torch._inductor.async_compile.after_fork", lambda: None)  # it would clear the real set
    end_compiling_processes()
    assert asked == [-signal.SIGKILL]
    assert torch._inductor.config.compile_threads == 1


def test_an_attribute_at_the_address_of_a_builtin_that_is_gone_is_scripted_as_what_it_is(monkeypatch):
    model = Model(test="train", device="cpu")
    model.module = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 1, padding="same", padding_mode="circular"))
    padding = model.module[0]._reversed_padding_repeated_twice
    table = torch.jit._builtins._get_builtin_table()
    monkeypatch.setitem(table, id(padding), "quantized_decomposed::dequantize_per_tensor")  # as what was there before
    with pytest.raises(RuntimeError, match="builtin cannot be used as a value"):
        torch.jit.script(model.module)
    apply_backend("jit", model)
    assert isinstance(model.module, torch.jit.ScriptModule)


def test_an_inference_by_jit_is_frozen_and_a_training_is_not():
    inference, training = Model(test="eval", device="cpu"), Model(test="train", device="cpu")
    for model in (inference, training):
        apply_backend("jit", model)
        assert isinstance(model.module, torch.jit.ScriptModule)
    assert list(inference.module.parameters()) == []
    assert len(list(training.module.parameters())) == 6


def test_an_exported_program_whose_parameters_are_copies_is_refused():
    with pytest.raises(RuntimeError, match="parameters of its own, which the optimizer does not have"):
        require_same_parameters(nn.Linear(2, 2), nn.Linear(2, 2))


def test_what_a_build_says_it_has_not_implemented_is_a_failure_and_not_unsupported(monkeypatch):
    def lost(_):
        raise NotImplementedError("scripting is gone")

    monkeypatch.setitem(BACKENDS, "jit", lost)
    with pytest.raises(RuntimeError, match="backend jit failed with NotImplementedError: scripting is gone"):
        apply_backend("jit", Model(test="eval", device="cpu"))


def test_every_backend_of_the_table_has_its_file_and_says_why_it_is_not_everywhere():
    assert set(BACKENDS) == set(backends.BACKENDS)
    for backend in backends.BACKENDS.values():
        assert bool(backend.why_not_elsewhere) == (set(backend.devices) != {"cpu", "cuda"})


def test_the_driver_reads_the_table_of_backends_without_torch():
    code = "import sys, torchbenchmark.backends; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
