"""Backend `inductor`: torch.compile as most users call it, with the default mode."""

from torchbenchmark.model import BenchmarkModel
from torchbenchmark.worker.backends.compiling import compile_with_inductor


def prepare(model: BenchmarkModel) -> None:
    compile_with_inductor(model)
