"""Category and domain of a model, by which the score shares out its weight."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import RootModel

from score.errors import ScoreError
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.registry import Registry
from torchbenchmark.yaml_files import read_yaml

PUBLISHED = Path(__file__).parent / "reference" / "v1_taxonomy.yaml"


@dataclass(frozen=True)
class Domain:
    category: str
    domain: str


DomainOf = Callable[[str], Domain]


class _TaxonomyFile(RootModel[dict[str, Domain]]):
    pass


class Taxonomy:
    """Where a model belongs: as published, else as its own metadata says."""

    def __init__(self, published: Mapping[str, Domain], registry: Callable[[], Registry] = Registry) -> None:
        """`registry` is asked for only when a model is not among the published ones."""
        self._published = published
        self._open_registry = registry
        self._registry: Registry | None = None

    def domain_of(self, model: str) -> Domain:
        if model in self._published:
            return self._published[model]
        if self._registry is None:
            self._registry = self._open_registry()
        try:
            metadata = self._registry.model(model).metadata
        except BenchmarkError as error:
            raise ScoreError(
                f"model {model} has no category and domain: it is neither in {PUBLISHED.name} nor a model with a "
                f"metadata.yaml here ({error}); name its folder with --models DIR, or leave its tests out"
            ) from error
        return Domain(metadata.category, metadata.domain)


def published_taxonomy(models: Sequence[Path] = ()) -> Taxonomy:
    """`models` are folders of further models, as `run --models` takes them."""
    return Taxonomy(read_yaml(PUBLISHED, _TaxonomyFile, ScoreError).root, lambda: Registry(tuple(models)))
