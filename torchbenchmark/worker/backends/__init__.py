"""How a model is run: one file a backend, each with `prepare(model)`, registered here."""

from torchbenchmark.model import BenchmarkModel
from torchbenchmark.worker.backends import eager

BACKENDS = {"eager": eager.prepare}


def apply_backend(name: str, model: BenchmarkModel) -> None:
    """Prepare `model` for the backend. Raises NotImplementedError for one that this harness does not have."""
    if name not in BACKENDS:
        raise NotImplementedError(f"backend {name!r} is not built yet (there are: {', '.join(BACKENDS)})")
    BACKENDS[name](model)
