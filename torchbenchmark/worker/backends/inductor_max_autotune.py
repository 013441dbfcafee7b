"""Backend `inductor_max_autotune`: inductor tries kernels for matrix products and convolutions and keeps the fastest.

The mode is torch's own, so on a GPU the kernels are also recorded in CUDA graphs; on the CPU there are none.
"""

from torchbenchmark.model import BenchmarkModel
from torchbenchmark.worker.backends.compiling import compile_with_inductor, mark_iterations


def prepare(model: BenchmarkModel) -> None:
    compile_with_inductor(model, mode="max-autotune")
    if model.device == "cuda":
        mark_iterations(model)
