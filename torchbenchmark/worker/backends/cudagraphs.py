"""Backend `cudagraphs`: torch.compile's own of that name, which records the eager kernels in CUDA graphs (GPU only).

Not a capture of the whole iteration by hand: that would refuse every model whose iteration waits for the device, would
need optimizers that can be captured, and would measure code of this harness in place of torch's.
"""

from torchbenchmark.model import BenchmarkModel
from torchbenchmark.worker.backends.compiling import compile_module, mark_iterations


def prepare(model: BenchmarkModel) -> None:
    compile_module(model, backend="cudagraphs")
    mark_iterations(model)
