"""What the backends of torch.compile have in common."""

from typing import Any

import torch

from torchbenchmark.model import BenchmarkModel


def compile_module(model: BenchmarkModel, **options: Any) -> None:
    """Put the module behind torch.compile; it is compiled in the first iteration."""
    module, _ = model.get_module()
    model.set_module(torch.compile(module, **options))


def compile_with_inductor(model: BenchmarkModel, mode: str | None = None) -> None:
    """Inductor, compiling in this process alone: its pool of workers would still be starting, or be importing torch,
    while the iterations are timed."""
    import torch._inductor.config as inductor  # imported by the first compilation in any case

    inductor.compile_threads = 1
    compile_module(model, backend="inductor", mode=mode)


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
