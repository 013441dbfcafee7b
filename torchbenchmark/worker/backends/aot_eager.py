"""Backend `aot_eager`: the graphs that Dynamo and AOTAutograd trace, run by eager kernels.

Against `eager` it shows what tracing costs, against `inductor` what the generated kernels gain.
"""

from torchbenchmark.model import BenchmarkModel
from torchbenchmark.worker.backends.compiling import compile_module


def prepare(model: BenchmarkModel) -> None:
    compile_module(model, backend="aot_eager")
