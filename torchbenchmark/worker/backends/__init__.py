"""How a model is run: one file a backend, each with `prepare(model)`, named in torchbenchmark/backends.py.

A backend changes the module alone. In training the forward and backward passes go through it, and what the model does
around its module (the loss, where the module does not compute it, and the optimizer's step) stays eager.
"""

import importlib

from torchbenchmark import backends
from torchbenchmark.model import BenchmarkModel

BACKENDS = {name: importlib.import_module(f"{__name__}.{name}").prepare for name in backends.BACKENDS}


def apply_backend(name: str, model: BenchmarkModel) -> None:
    """Prepare `model` for the backend. Raises NotImplementedError for one that this harness does not have."""
    if name not in BACKENDS:
        raise NotImplementedError(f"backend {name!r} is not built yet (there are: {', '.join(BACKENDS)})")
    try:
        BACKENDS[name](model)
    except NotImplementedError as error:
        # What a model cannot do on a backend stands in its metadata. Told only by the build, it is a failure: one that
        # the build before may not have had.
        raise RuntimeError(f"backend {name} failed with NotImplementedError: {error}") from error
