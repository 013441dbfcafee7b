"""What the backends of torch.compile have in common."""

import importlib
from typing import Any

import torch

from torchbenchmark.model import BenchmarkModel


def compile_module(model: BenchmarkModel, **options: Any) -> None:
    """Put the module behind torch.compile; it is compiled in the first iteration."""
    module, _ = model.get_module()
    model.set_module(torch.compile(module, **options))


def compile_with_inductor(model: BenchmarkModel, mode: str | None = None) -> None:
    """Inductor, whose pool of compiling processes is ended after the first iteration: it may still be starting then,
    and nothing starts while something is timed."""
    compile_module(model, backend="inductor", mode=mode)
    invoke, to_come = model.invoke, [end_compiling_processes]

    def invoke_and_end_them() -> tuple[torch.Tensor, ...]:
        outputs = invoke()
        while to_come:
            to_come.pop()()
        return outputs

    model.invoke = invoke_and_end_them


def end_compiling_processes() -> None:
    """Kill what inductor's pool has started; whatever is compiled later is compiled in this process."""
    inductor = importlib.import_module("torch._inductor.async_compile")
    for pool in getattr(inductor, "_pool_set", ()):
        process = getattr(pool, "process", None)  # asked to end, it would first have to end its start
        if process is not None:
            process.kill()
    inductor.shutdown_compile_workers()
    importlib.import_module("torch._inductor.config").compile_threads = 1


def mark_iterations(model: BenchmarkModel) -> None:
    """Tell torch where an iteration begins: the outputs of the one before may then be overwritten.

    Without it torch guesses, and where it sees an output still held it gives the next iteration fresh memory and
    records it anew.
    """
    invoke = model.invoke

    def invoke_as_a_step() -> tuple[torch.Tensor, ...]:
        torch.compiler.cudagraph_mark_step_begin()
        return invoke()

    model.invoke = invoke_as_a_step
