"""Backend `inductor_cudagraphs`: inductor's kernels recorded in CUDA graphs, which spares the launches (GPU only)."""

from torchbenchmark.model import BenchmarkModel
from torchbenchmark.worker.backends.compiling import compile_with_inductor, mark_iterations


def prepare(model: BenchmarkModel) -> None:
    compile_with_inductor(model, mode="reduce-overhead")
    mark_iterations(model)
