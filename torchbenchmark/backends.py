"""The backends: the one place that names them and says where each runs. What each does with a model stands in a file of
its name in worker/backends; a new one is that file and a line here.

Standard library only: both the driver and the worker read this table.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Backend:
    meaning: str
    devices: tuple[str, ...] = ("cpu", "cuda")
    why_not_elsewhere: str = ""  # for a device that is not among `devices`


_NO_GRAPHS = "CUDA graphs need a GPU; on the CPU torch would run without them and say nothing"

BACKENDS: dict[str, Backend] = {
    "eager": Backend("the module as it is"),
    "inductor": Backend("torch.compile, inductor in its default mode"),
    "inductor_cudagraphs": Backend(
        "torch.compile, inductor with mode='reduce-overhead': its kernels replayed as CUDA graphs",
        ("cuda",),
        _NO_GRAPHS,
    ),
    "inductor_max_autotune": Backend(
        "torch.compile, inductor with mode='max-autotune': on a GPU with CUDA graphs, as torch does"
    ),
    "aot_eager": Backend("torch.compile as far as the traced forward and backward graphs, run operator by operator"),
    "cudagraphs": Backend(
        "torch.compile with its backend 'cudagraphs': ATen kernels replayed as CUDA graphs", ("cuda",), _NO_GRAPHS
    ),
    "jit": Backend("torch.jit.script; for eval also optimize_for_inference, as V1 did"),
    "export": Backend("torch.export, then the exported program's module"),
}
