"""Backend `eager`: the module as it is."""

from torchbenchmark.model import BenchmarkModel


def prepare(model: BenchmarkModel) -> None:
    """Nothing to do."""
